// The index over policies decides as an evaluator that knows no index: it walks every policy as it is written.
import assert from "node:assert/strict";
import { isIPv4 } from "node:net";
import { test } from "node:test";
import { RBACSchema } from "@tulle/xds/envoy/config/rbac/v3/rbac_pb";
import fc from "fast-check";
import { Place, Problems } from "../../../fields/problems.ts";
import { fromConfiguration, requestHead } from "../../../testing/from-configuration.ts";
import { StreamInfo } from "../../../http/stream-info.ts";
import { compileRules } from "./compile-rules.ts";

interface Caller {
  readonly path: string;
  readonly method: string;
  readonly host: string;
  readonly header: string | undefined;
  readonly ip: string;
  readonly port: number;
  readonly principals: readonly string[] | undefined;
  readonly claim: string | readonly string[] | undefined;
}

interface Text {
  readonly exact?: string;
  readonly prefix?: string;
  readonly suffix?: string;
  readonly contains?: string;
  readonly safe_regex?: { readonly regex: string };
  readonly ignore_case: boolean;
}

/** A permission or a principal: `and`, `or` and `not` have other names in the two, and so have their lists. */
type Node =
  | { readonly kind: "any" }
  | { readonly kind: "and" | "or"; readonly nodes: readonly Node[] }
  | { readonly kind: "not"; readonly node: Node }
  | { readonly kind: "path"; readonly text: Text }
  | { readonly kind: "header"; readonly name: string; readonly text: Text; readonly inverts: boolean }
  | { readonly kind: "claim"; readonly text: Text; readonly isList: boolean }
  | { readonly kind: "principal"; readonly text: Text }
  | { readonly kind: "ip"; readonly address: string; readonly bits: number }
  | { readonly kind: "port"; readonly port: number };

const words = [
  "/",
  "/a",
  "/a/",
  "/a/b",
  "/a/bc",
  "/A",
  "/b/a",
  "a.test",
  "b.a.test",
  "A.Test",
  "GET",
  "POST",
  "a",
  "b",
];
const principals = ["spiffe://td/ns/a/sa/a", "spiffe://td/ns/a/sa/b", "spiffe://td/ns/b/sa/a", "CN=a"];
const addresses = ["10.0.0.1", "10.0.1.1", "10.128.0.1", "192.168.0.1", "2001:db8::1"];

const arbitraryPlainText = (values: readonly string[]): fc.Arbitrary<Text> =>
  fc
    .tuple(
      fc.constantFrom("exact", "prefix", "suffix", "contains"),
      fc.constantFrom(...values),
      fc.boolean(),
      fc.nat(3),
    )
    .map(([kind, value, ignore_case, cut]) => {
      if (kind === "exact") return { exact: value, ignore_case };
      const part =
        kind === "suffix" ? value.slice(Math.min(cut, value.length - 1)) : value.slice(0, value.length - cut);
      return { [kind]: part === "" ? value : part, ignore_case };
    });

/** Parts of values with gaps between them, and what no index can use. */
const arbitraryRegex = (values: readonly string[]): fc.Arbitrary<Text> =>
  fc
    .array(
      fc.oneof(
        { weight: 3, arbitrary: fc.constantFrom(".*", ".+", "[^/]+", "/ns/a/", "/ns/b/sa/") },
        {
          weight: 3,
          arbitrary: fc
            .tuple(fc.constantFrom(...values), fc.nat(4), fc.nat(12))
            .map(([value, from, length]) => value.slice(from, from + length).replaceAll(".", "\\.")),
        },
        { weight: 1, arbitrary: fc.constantFrom("a?", "(a|b)", "[ab]", ".") },
      ),
      { minLength: 1, maxLength: 4 },
    )
    .map((parts) => ({ safe_regex: { regex: parts.join("") || "a" }, ignore_case: false }));

const arbitraryText = (values: readonly string[]): fc.Arbitrary<Text> =>
  fc.oneof({ weight: 2, arbitrary: arbitraryPlainText(values) }, { weight: 1, arbitrary: arbitraryRegex(values) });

function leaves(side: "permission" | "principal"): fc.Arbitrary<Node>[] {
  const shared: fc.Arbitrary<Node>[] = [
    fc.constant({ kind: "any" }),
    arbitraryText(words).map((text) => ({ kind: "path", text })),
    fc
      .tuple(fc.constantFrom(":method", ":authority", "x-h"), arbitraryText(words), fc.boolean())
      .map(([name, text, inverts]) => ({ kind: "header", name, text, inverts: inverts && name === "x-h" })),
    fc.tuple(arbitraryText(words), fc.boolean()).map(([text, isList]) => ({ kind: "claim", text, isList })),
  ];
  if (side === "permission") {
    return [...shared, fc.constantFrom(80, 81).map((port) => ({ kind: "port", port }) as const)];
  }
  return [
    ...shared,
    arbitraryText(principals).map((text) => ({ kind: "principal", text })),
    fc
      .tuple(fc.constantFrom(...addresses), fc.constantFrom(0, 8, 9, 16, 24, 32))
      .map(([address, bits]) => ({ kind: "ip", address, bits })),
  ];
}

function tree(side: "permission" | "principal"): fc.Arbitrary<Node> {
  const { node } = fc.letrec<{ node: Node }>((tie) => ({
    node: fc.oneof(
      { maxDepth: 3, withCrossShrink: true },
      ...leaves(side),
      fc
        .tuple(fc.constantFrom("and", "or"), fc.array(tie("node"), { minLength: 1, maxLength: 8 }))
        .map(([kind, nodes]) => ({ kind, nodes })),
      tie("node").map((inner): Node => ({ kind: "not", node: inner })),
    ),
  }));
  return node;
}

function toJson(node: Node, side: "permission" | "principal"): object {
  const isPermission = side === "permission";
  switch (node.kind) {
    case "any":
      return { any: true };
    case "and":
    case "or": {
      const inner = node.nodes.map((one) => toJson(one, side));
      return isPermission ? { [`${node.kind}_rules`]: { rules: inner } } : { [`${node.kind}_ids`]: { ids: inner } };
    }
    case "not":
      return { [isPermission ? "not_rule" : "not_id"]: toJson(node.node, side) };
    case "path":
      return { url_path: { path: node.text } };
    case "header":
      return { header: { name: node.name, string_match: node.text, invert_match: node.inverts } };
    case "claim": {
      const value = node.isList ? { list_match: { one_of: { string_match: node.text } } } : { string_match: node.text };
      return { metadata: { filter: "jwt", path: [{ key: "claims" }, { key: "c" }], value } };
    }
    case "principal":
      return { authenticated: { principal_name: node.text } };
    case "ip":
      return { remote_ip: { address_prefix: node.address, prefix_len: node.bits } };
    case "port":
      return { destination_port: node.port };
  }
}

function textMatches(text: Text, value: string): boolean {
  const fold = (one: string): string => (text.ignore_case ? one.toLowerCase() : one);
  const folded = fold(value);
  if (text.exact !== undefined) return folded === fold(text.exact);
  if (text.prefix !== undefined) return folded.startsWith(fold(text.prefix));
  if (text.suffix !== undefined) return folded.endsWith(fold(text.suffix));
  if (text.safe_regex !== undefined) return new RegExp(`^(?:${text.safe_regex.regex})$`).test(value);
  return folded.includes(fold(text.contains!));
}

function bitsOf(address: string): string {
  if (isIPv4(address)) {
    return address
      .split(".")
      .map((part) => Number(part).toString(2).padStart(8, "0"))
      .join("");
  }
  assert.equal(address, "2001:db8::1");
  return `6${BigInt("0x20010db8000000000000000000000001").toString(2).padStart(128, "0")}`;
}

function inRange(ip: string, address: string, bits: number): boolean {
  const length = isIPv4(address) ? bits : bits + 1;
  return isIPv4(ip) === isIPv4(address) && bitsOf(ip).slice(0, length) === bitsOf(address).slice(0, length);
}

function holds(node: Node, caller: Caller): boolean {
  switch (node.kind) {
    case "any":
      return true;
    case "and":
      return node.nodes.every((one) => holds(one, caller));
    case "or":
      return node.nodes.some((one) => holds(one, caller));
    case "not":
      return !holds(node.node, caller);
    case "path":
      return textMatches(node.text, caller.path.split("?")[0]!);
    case "header": {
      const values = { ":method": caller.method, ":authority": caller.host, "x-h": caller.header };
      const value = values[node.name as keyof typeof values];
      return value !== undefined && textMatches(node.text, value) !== node.inverts;
    }
    case "claim": {
      const { claim } = caller;
      if (node.isList) return Array.isArray(claim) && claim.some((one: string) => textMatches(node.text, one));
      return typeof claim === "string" && textMatches(node.text, claim);
    }
    case "principal":
      return caller.principals?.some((one) => textMatches(node.text, one)) ?? false;
    case "ip":
      return inRange(caller.ip, node.address, node.bits);
    case "port":
      return caller.port === node.port;
  }
}

interface PolicyNodes {
  readonly permissions: readonly Node[];
  readonly principals: readonly Node[];
}

const arbitraryPolicy: fc.Arbitrary<PolicyNodes> = fc.record({
  permissions: fc.array(tree("permission"), { minLength: 1, maxLength: 3 }),
  principals: fc.array(tree("principal"), { minLength: 1, maxLength: 3 }),
});

const word = fc.constantFrom(...words);
const arbitraryCaller: fc.Arbitrary<Caller> = fc.record({
  path: fc.tuple(word, fc.constantFrom("", "?a", "/a")).map(([start, rest]) => start + rest),
  method: word,
  host: word,
  header: fc.option(word, { nil: undefined }),
  ip: fc.constantFrom(...addresses),
  port: fc.constantFrom(80, 81),
  principals: fc.option(
    // A certificate has a subject, an empty one as well.
    fc
      .tuple(fc.subarray(principals.slice(0, -1)), fc.constantFrom("CN=a", ""))
      .map(([sans, subject]) => [...sans, subject]),
    { nil: undefined },
  ),
  claim: fc.option(fc.oneof(word, fc.array(word, { maxLength: 2 })), { nil: undefined }),
});

const policyName = (index: number): string => `p${String(index).padStart(3, "0")}`;

test("indexed policies decide as policies one by one", () => {
  fc.assert(
    fc.property(
      fc.array(arbitraryPolicy, { minLength: 5, maxLength: 40 }),
      fc.array(arbitraryCaller, { minLength: 10, maxLength: 10 }),
      (policies, callers) => {
        const message = fromConfiguration(RBACSchema, {
          policies: Object.fromEntries(
            policies.map((policy, index) => [
              policyName(index),
              {
                permissions: policy.permissions.map((node) => toJson(node, "permission")),
                principals: policy.principals.map((node) => toJson(node, "principal")),
              },
            ]),
          ),
        });
        const problems = new Problems();
        const rules = compileRules(message, Place.root, problems);
        assert.deepEqual(problems.list, []);
        for (const caller of callers) {
          const expected = policies.findIndex(
            (policy) =>
              policy.permissions.some((node) => holds(node, caller)) &&
              policy.principals.some((node) => holds(node, caller)),
          );
          const actual = decide(rules, caller);
          assert.equal(actual, expected < 0 ? undefined : policyName(expected), JSON.stringify(caller));
        }
      },
    ),
    { numRuns: 200 },
  );
});

function decide(rules: ReturnType<typeof compileRules>, caller: Caller): string | undefined {
  const request = requestHead({
    path: caller.path,
    method: caller.method,
    authority: caller.host,
    headers: caller.header === undefined ? {} : { "x-h": caller.header },
  });
  const remote = caller.ip.includes(":") ? `[${caller.ip}]:4711` : `${caller.ip}:4711`;
  const info = new StreamInfo(0, 0, `10.9.9.9:${caller.port}`, remote, "");
  info.request = request;
  if (caller.principals !== undefined) {
    info.downstreamPeerCertificate = {
      uriSans: caller.principals.filter((name) => name.startsWith("spiffe:")),
      dnsSans: [],
      subject: caller.principals.find((name) => !name.startsWith("spiffe:")) ?? "",
    };
  }
  if (caller.claim !== undefined) info.dynamicMetadata = { jwt: { claims: { c: caller.claim } } };
  return rules.matchedPolicy(request, info);
}
