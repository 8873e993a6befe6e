// Nothing is applied wider than it is written: whatever VirtualServices say of their clients and requests, each request
// of each client ends at the rule that a reader of the manifests would name. The reader below knows no xDS: it takes
// the words one by one.
import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { create } from "@bufbuild/protobuf";
import { NodeSchema } from "@tulle/xds/envoy/config/core/v3/base_pb";
import { tablesFor } from "./random-tables.ts";
import { type Call, SimulatedProxy } from "./simulated-proxy.ts";
import { tries } from "../tools/tries.ts";

interface Text {
  readonly exact?: string;
  readonly prefix?: string;
  readonly regex?: string;
}
interface Match {
  readonly uri?: Text;
  readonly ignoreUriCase?: boolean;
  readonly scheme?: Text;
  readonly method?: Text;
  readonly headers?: Readonly<Record<string, Text>>;
  readonly withoutHeaders?: Readonly<Record<string, Text>>;
  readonly queryParams?: Readonly<Record<string, Text>>;
  readonly port?: number;
  readonly gateways?: readonly string[];
  readonly sourceLabels?: Readonly<Record<string, string>>;
  readonly sourceNamespace?: string;
}
interface Rule {
  readonly match?: readonly Match[];
  readonly route: readonly unknown[];
}
interface Written {
  readonly metadata: { readonly name: string; readonly namespace: string };
  readonly spec: {
    readonly exportTo?: readonly string[];
    readonly gateways?: readonly string[];
    readonly http: readonly Rule[];
  };
}

const host = "catalog.shop.svc.cluster.local";
const regexes = ["a|b", "[ab]+", ".*"];
const text = fc.oneof(
  fc.record({ exact: fc.constantFrom("a", "b", "ab") }),
  fc.record({ prefix: fc.constantFrom("a", "b") }),
  fc.record({ regex: fc.constantFrom(...regexes) }),
);
const textOrPresence = fc.oneof({ weight: 3, arbitrary: text }, { weight: 1, arbitrary: fc.constant({}) });
const named = (value: fc.Arbitrary<Text>) => fc.dictionary(fc.constantFrom("x-a", "x-b"), value, { maxKeys: 2 });
const conditions = {
  uri: fc.oneof(
    fc.record({ exact: fc.constantFrom("/a", "/B") }),
    fc.record({ prefix: fc.constantFrom("/", "/a", "/B") }),
    fc.record({ regex: fc.constantFrom("/a.*", "/[aB]") }),
  ),
  ignoreUriCase: fc.boolean(),
  scheme: fc.record({ exact: fc.constantFrom("http", "https") }),
  method: fc.record({ exact: fc.constantFrom("GET", "POST") }),
  headers: named(textOrPresence),
  withoutHeaders: named(
    fc.oneof({ weight: 4, arbitrary: textOrPresence }, { weight: 1, arbitrary: fc.constant({ regex: "*" }) }),
  ),
  queryParams: fc.dictionary(fc.constantFrom("a", "b"), textOrPresence, { maxKeys: 2 }),
  port: fc.constantFrom(80, 8080),
  gateways: fc.array(fc.constantFrom("mesh", "shop/public", "shop/second", "shop/unknown"), {
    minLength: 1,
    maxLength: 2,
  }),
  sourceLabels: fc.constantFrom({ app: "web" }, { app: "other" }, { app: "web", tier: "front" }, {}),
  sourceNamespace: fc.constantFrom("shop", "blog", "tulle-system"),
} as const;
/** Few conditions, or no request would ever meet them. */
const match = fc
  .subarray(Object.keys(conditions) as (keyof typeof conditions)[], { maxLength: 3 })
  .chain((names) =>
    fc.record<Record<string, unknown>>(Object.fromEntries(names.map((name) => [name, conditions[name]]))),
  )
  .map((chosen): Match => chosen);
const virtualServices = fc
  .array(
    fc.record({
      namespace: fc.constantFrom("shop", "blog", "tulle-system"),
      exportTo: fc.option(fc.constantFrom(["."], ["*"], ["blog"], ["shop", "tulle-system"]), { nil: undefined }),
      gateways: fc.option(fc.constantFrom(["mesh"], ["shop/public"], ["mesh", "shop/public", "shop/second"]), {
        nil: undefined,
      }),
      rules: fc.array(fc.array(match, { maxLength: 2 }), { minLength: 1, maxLength: 4 }),
    }),
    { minLength: 1, maxLength: 3 },
  )
  .map((all) =>
    all.map(({ namespace, exportTo, gateways, rules }, index) => ({
      apiVersion: "networking.istio.io/v1",
      kind: "VirtualService",
      metadata: { name: `v${index}`, namespace },
      spec: {
        hosts: [host],
        ...(exportTo === undefined ? {} : { exportTo }),
        ...(gateways === undefined ? {} : { gateways }),
        http: rules.map((matches, number) => ({
          match: matches,
          route: [{ destination: { host, subset: `v${index}r${number}` } }],
        })),
      },
    })),
  );

interface Client {
  readonly type: "sidecar" | "router";
  readonly address: string;
  readonly namespace: string;
  readonly labels: Readonly<Record<string, string>>;
}
const clients: readonly Client[] = [
  { type: "sidecar", address: "127.9.9.1", namespace: "shop", labels: { app: "web", tier: "front" } },
  { type: "sidecar", address: "127.9.9.2", namespace: "shop", labels: { app: "other" } },
  { type: "sidecar", address: "127.9.9.3", namespace: "blog", labels: { app: "web" } },
  { type: "router", address: "127.9.9.4", namespace: "tulle-system", labels: { app: "web", tulle: "ingressgateway" } },
];
const nodes = clients.map(({ type, address, namespace, labels }, index) =>
  create(NodeSchema, {
    id: `${type}~${address}~pod-${index}.${namespace}~${namespace}.svc.cluster.local`,
    metadata: { INTERCEPTION_MODE: "NONE", NAMESPACE: namespace, LABELS: labels },
  }),
);
const gateway = (name: string, number: number) => ({
  apiVersion: "networking.istio.io/v1",
  kind: "Gateway",
  metadata: { name, namespace: "shop" },
  spec: {
    selector: { tulle: "ingressgateway" },
    servers: [{ port: { number, name: "http", protocol: "HTTP" }, hosts: ["*"] }],
  },
});
const fixed = [
  {
    apiVersion: "v1",
    kind: "Service",
    metadata: { name: "catalog", namespace: "shop" },
    spec: {
      selector: { app: "catalog" },
      ports: [
        { name: "http", port: 80 },
        { name: "http-b", port: 8080 },
      ],
    },
  },
  gateway("public", 80),
  gateway("second", 8080),
];

const request = fc.record({
  client: fc.constantFrom(...clients),
  port: fc.constantFrom(80, 8080),
  method: fc.constantFrom("GET", "POST"),
  scheme: fc.constantFrom("http", "https"),
  path: fc.constantFrom("/a", "/A", "/ab", "/b", "/B", "/"),
  query: fc.dictionary(fc.constantFrom("a", "b"), fc.constantFrom("a", "b", "ab", "c"), { maxKeys: 2 }),
  headers: fc.dictionary(fc.constantFrom("x-a", "x-b"), fc.constantFrom("a", "b", "ab", "c"), { maxKeys: 2 }),
});
type Request = typeof request extends fc.Arbitrary<infer T> ? T : never;

/** Which rule takes the request, by its subset; undefined where no rule does. */
function readerChooses(written: readonly Written[], asked: Request): string | undefined {
  const { client, port } = asked;
  const through = client.type === "sidecar" ? "mesh" : port === 80 ? "shop/public" : "shop/second";
  const visible = written.filter(({ metadata, spec: { exportTo = ["*"], gateways = ["mesh"] } }) => {
    const namespaces = exportTo.map((name) => (name === "." ? metadata.namespace : name));
    return (namespaces.includes("*") || namespaces.includes(client.namespace)) && gateways.includes(through);
  });
  // Sidecars follow one VirtualService for a host, gateways all of them.
  const followed = client.type === "sidecar" ? visible.slice(0, 1) : visible;
  const meant = followed.flatMap((each) => {
    const entries = each.spec.http.flatMap(({ match: matches = [] }, rule) => {
      const all: readonly Match[] = matches.length === 0 ? [{}] : matches;
      return all.map((one) => ({ subset: `${each.metadata.name}r${rule}`, one }));
    });
    const own = entries.filter(({ one }) => isForClient(one, client, through, port));
    const last = own.findIndex(({ one }) => takesAll(one));
    return last < 0 ? own : own.slice(0, last + 1);
  });
  // What takes everything of one VirtualService stands behind what others ask for.
  const ordered = [...meant.filter(({ one }) => !takesAll(one)), ...meant.filter(({ one }) => takesAll(one))];
  return ordered.find(({ one }) => isMet(one, asked))?.subset;
}

function isForClient(one: Match, client: Client, through: string, port: number): boolean {
  const { gateways = [through], sourceLabels = {}, sourceNamespace = client.namespace } = one;
  return (
    gateways.includes(through) &&
    (one.port ?? port) === port &&
    sourceNamespace === client.namespace &&
    Object.entries(sourceLabels).every(([name, value]) => client.labels[name] === value)
  );
}

function takesAll({
  uri = { prefix: "/" },
  scheme,
  method,
  headers = {},
  withoutHeaders = {},
  queryParams = {},
}: Match) {
  const asks = { ...headers, ...withoutHeaders, ...queryParams };
  return uri.prefix === "/" && scheme === undefined && method === undefined && Object.keys(asks).length === 0;
}

function isMet(one: Match, { path, query, headers, method, scheme }: Request): boolean {
  const { uri = { prefix: "/" }, ignoreUriCase = false } = one;
  const fold = (value: string): string => (ignoreUriCase ? value.toLowerCase() : value);
  const uriIsMet =
    uri.regex !== undefined
      ? says(uri, path)
      : uri.exact !== undefined
        ? fold(path) === fold(uri.exact)
        : fold(path).startsWith(fold(uri.prefix!));
  return (
    uriIsMet &&
    (one.scheme === undefined || says(one.scheme, scheme)) &&
    (one.method === undefined || says(one.method, method)) &&
    Object.entries(one.headers ?? {}).every(([name, wanted]) => has(wanted, headers[name])) &&
    Object.entries(one.queryParams ?? {}).every(([name, wanted]) => has(wanted, query[name])) &&
    // A value that is not there counts as an empty one, where a value is asked for.
    !Object.entries(one.withoutHeaders ?? {}).some(([name, unwanted]) =>
      isPresence(unwanted) ? headers[name] !== undefined : says(unwanted, headers[name] ?? ""),
    )
  );
}

function isPresence(wanted: Text): boolean {
  return Object.keys(wanted).length === 0 || wanted.regex === "*";
}

function has(wanted: Text, value: string | undefined): boolean {
  return value !== undefined && (isPresence(wanted) || says(wanted, value));
}

function says({ exact, prefix, regex }: Text, value: string): boolean {
  if (exact !== undefined) return value === exact;
  if (prefix !== undefined) return value.startsWith(prefix);
  return new RegExp(`^(?:${regex})$`).test(value);
}

function callOf({ client, port, method, scheme, path, query, headers }: Request): Call {
  const parameters = Object.entries(query).map(([name, value]) => `${name}=${value}`);
  return {
    to: `${client.address}:${client.type === "sidecar" ? 15_007 : port}`,
    host: `${host}:${port}`,
    method,
    scheme,
    path: parameters.length === 0 ? path : `${path}?${parameters.join("&")}`,
    headers,
  };
}

test("each request of each client ends where a reader of the manifests says", async () => {
  const seen = { byRule: 0, byNone: 0 };
  await fc.assert(
    fc.asyncProperty(
      virtualServices,
      fc.array(request, { minLength: 30, maxLength: 30 }),
      async (written, requests) => {
        const { routed, proxies } = await tablesFor([...fixed, ...written], nodes);
        assert.equal(routed, written.length, "all are valid");
        const simulated = new Map(clients.map((client, index) => [client, SimulatedProxy.of(proxies[index]!)]));
        for (const asked of requests) {
          const subset = readerChooses(written, asked);
          const outcome = simulated.get(asked.client)!.call(callOf(asked));
          seen[subset === undefined ? "byNone" : "byRule"] += 1;
          const cluster = "cluster" in outcome ? outcome.cluster : undefined;
          // Without a rule the Service stays as it is for sidecars; gateways know no host without one.
          const nobodys = asked.client.type === "sidecar" ? `outbound|${asked.port}||${host}` : undefined;
          const expected = subset === undefined ? nobodys : `outbound|${asked.port}|${subset}|${host}`;
          assert.ok(
            cluster === expected || (subset === undefined && "status" in outcome && outcome.status === 404),
            `${JSON.stringify(callOf(asked))} of ${JSON.stringify(asked.client)}: ${expected}, not ${JSON.stringify(outcome)}`,
          );
        }
      },
    ),
    { numRuns: tries({ short: 50, long: 150 }) },
  );
  assert.ok(seen.byRule > 500 && seen.byNone > 500, JSON.stringify(seen));
});
