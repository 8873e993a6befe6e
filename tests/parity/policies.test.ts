// The same policies on Tulle's proxy and on a stock Envoy, at a gateway and in front of an application: the same calls
// are allowed, denied and refused, in the same words. The mesh is that of the first run with the policies of
// `policy-rules.ts`.
import assert from "node:assert/strict";
import http from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, describe, test } from "node:test";
import { exportJWK, generateKeyPair, SignJWT } from "jose";
import { type Call, type Expected, http2Alone, type Row, rows, type Shape, type Versions } from "./call.ts";
import { comparable, withoutCluster } from "./compare.ts";
import { checkExpected } from "./expectation.ts";
import { ParityMesh, proxies } from "./parity-mesh.ts";
import { type PolicyRule, policyRules } from "./policy-rules.ts";
import { traceCalls, type Traces } from "./trace-calls.ts";
import { waitForStatus } from "./wait-for-status.ts";

const issuer = "https://issuer.test";
const fetched = "https://fetched.test";
const far = Math.floor(Date.now() / 1000) + 36_000;

const keys = await generateKeyPair("ES256", { extractable: true });
const otherKeys = await generateKeyPair("EdDSA", { extractable: true });
const jwk = { ...(await exportJWK(keys.publicKey)), kid: "a", alg: "ES256" };
const otherJwk = { ...(await exportJWK(otherKeys.publicKey)), kid: "b" };

function token(claims: Readonly<Record<string, unknown>>): Promise<string> {
  const payload = { iss: issuer, aud: "parity", sub: "someone", exp: far, ...claims };
  return new SignJWT(payload).setProtectedHeader({ alg: "ES256", kid: "a" }).sign(keys.privateKey);
}

function otherToken(claims: Readonly<Record<string, unknown>>): Promise<string> {
  const payload = { iss: fetched, aud: "parity", sub: "someone", exp: far, ...claims };
  return new SignJWT(payload).setProtectedHeader({ alg: "EdDSA", kid: "b" }).sign(otherKeys.privateKey);
}

const bearer = (text: string): Record<string, string> => ({ authorization: `Bearer ${text}` });

function policy(rule: PolicyRule): object {
  const { name, action = "ALLOW", annotations, source, operation = {}, when } = rule;
  const paths = "paths" in operation ? {} : { paths: [`/v1/${name}/*`] };
  return {
    apiVersion: "security.istio.io/v1",
    kind: "AuthorizationPolicy",
    metadata: { name, namespace: "parity", ...(annotations === undefined ? {} : { annotations }) },
    spec: {
      action,
      rules: [
        {
          ...(source === undefined ? {} : { from: [{ source }] }),
          to: [{ operation: { ...operation, ...paths } }],
          ...(when === undefined ? {} : { when }),
        },
      ],
    },
  };
}

/** What claims lead to; `otherwise` is for whoever has none of them. */
const claimRoutes = {
  apiVersion: "networking.tulle.io/v1",
  kind: "VirtualService",
  metadata: { name: "claims", namespace: "parity" },
  spec: {
    hosts: ["claims.example.com"],
    gateways: ["gateway"],
    http: [
      route("exact", { "@request.auth.claims.groups": { exact: "admin" } }),
      route("prefix", { "@request.auth.claims[groups]": { prefix: "dev-" } }),
      route("regex", { "@request.auth.claims.sub": { regex: "t[0-9]+" } }),
      route("nested", { "@request.auth.claims.realm.roles": { exact: "admin" } }),
      route("nested-in-brackets", { "@request.auth.claims[https://claims.test/role]": { exact: "admin" } }),
      route("present", { "@request.auth.claims.beta": {} }),
      route("with-header", { "@request.auth.claims.scope": { exact: "a" }, "x-there": {} }),
    ],
  },
};

function route(name: string, headers: object): object {
  return { name, match: [{ headers }], route: [{ destination: { host: "echo", subset: "version-v1" } }] };
}

function manifests(jwksUri: string): string {
  const allowed = { name: "otherwise", operation: { paths: ["/v1/deny-*", "/v1/jwt/*"] }, calls: [] };
  const authentication = {
    apiVersion: "security.tulle.io/v1",
    kind: "RequestAuthentication",
    metadata: { name: "tokens", namespace: "parity" },
    spec: {
      jwtRules: [
        {
          issuer,
          audiences: ["parity"],
          jwks: JSON.stringify({ keys: [jwk] }),
          fromHeaders: [{ name: "authorization", prefix: "Bearer " }, { name: "x-token" }],
          fromParams: ["token"],
          fromCookies: ["token"],
          outputPayloadToHeader: "x-payload",
          outputClaimToHeaders: [{ header: "x-subject", claim: "sub" }],
        },
        {
          issuer: fetched,
          audiences: ["parity"],
          jwksUri,
          fromHeaders: [{ name: "x-fetched" }],
          forwardOriginalToken: true,
        },
      ],
    },
  };
  return [...policyRules, allowed]
    .map((rule) => JSON.stringify(policy(rule)))
    .concat(JSON.stringify(authentication), JSON.stringify(claimRoutes))
    .join("\n---\n");
}

async function ruleRows(): Promise<Row[]> {
  const table: Row[] = [];
  for (const rule of policyRules) {
    for (const { name, isAllowed, method = "GET", host, path: rest = "x", headers, claims } of rule.calls) {
      const shape: Shape = {
        method,
        ...(host === undefined ? {} : { host }),
        headers: { ...headers, ...(claims === undefined ? {} : bearer(await token(claims))) },
      };
      const expected = isAllowed ? { status: 200 } : deniedBy(rule);
      table.push([`${rule.name}: ${name}`, `/v1/${rule.name}/${rest}`, shape, expected]);
    }
  }
  return table;
}

function deniedBy({ action, name }: PolicyRule): Expected {
  const matched = action === "DENY" ? `ns[parity]-policy[${name}]-rule[0]` : "none";
  return { status: 403, details: `rbac_access_denied_matched_policy[${matched}]`, bodyIncludes: "RBAC: access denied" };
}

const refused = (reason: string, bodyIncludes: string): Expected => ({
  status: 401,
  details: `jwt_authn_access_denied{${reason}}`,
  bodyIncludes,
});

async function tokenRows(): Promise<Row[]> {
  const good = await token({ sub: "alice" });
  const [head = "", payload = "", signature = ""] = good.split(".");
  const none = Buffer.from(JSON.stringify({ alg: "none" })).toString("base64url");
  const table: readonly (readonly [
    name: string,
    query: string,
    headers: Shape["headers"] & object,
    expected: Expected,
    versions?: Versions,
  ])[] = [
    ["no token", "", {}, { status: 200, received: { "x-payload": null, "x-subject": null } }],
    [
      "a header",
      "",
      bearer(good),
      { status: 200, received: { authorization: null, "x-payload": payload, "x-subject": "alice" } },
    ],
    [
      "a header without prefix",
      "",
      { "x-token": good },
      { status: 200, received: { "x-token": null, "x-subject": "alice" } },
    ],
    ["a cookie", "", { cookie: `a=b; token=${good}` }, { status: 200, received: { "x-subject": "alice" } }],
    [
      "a cookie that comes as a field of its own",
      "",
      { cookie: ["a=b", `token=${good}`, "c=d"] },
      { status: 200, received: { "x-subject": "alice", cookie: `a=b; token=${good}; c=d` } },
      http2Alone,
    ],
    ["a parameter", `?token=${good}`, {}, { status: 200, received: { "x-subject": "alice" } }],
    ["another scheme", "", { authorization: `Basic ${good}` }, { status: 200, received: { "x-subject": null } }],
    [
      "claims that the client writes itself",
      "",
      { "x-subject": "root", "x-payload": "x" },
      { status: 200, received: { "x-subject": null, "x-payload": null } },
    ],
    ["keys that were fetched", "", { "x-fetched": await otherToken({}) }, { status: 200 }],
    ["both issuers", "", { ...bearer(good), "x-fetched": await otherToken({}) }, { status: 200 }],
    [
      "no token at all",
      "",
      bearer("x"),
      refused(
        "Jwt_is_not_in_the_form_of_Header.Payload.Signature_with_two_dots_and_3_sections",
        "Jwt is not in the form",
      ),
    ],
    ["expired", "", bearer(await token({ exp: 1_700_000_000 })), refused("Jwt_is_expired", "Jwt is expired")],
    ["not yet valid", "", bearer(await token({ nbf: far })), refused("Jwt_not_yet_valid", "Jwt not yet valid")],
    [
      "another audience",
      "",
      bearer(await token({ aud: "other" })),
      refused("Audiences_in_Jwt_are_not_allowed", "Audiences in Jwt are not allowed"),
    ],
    [
      "no audience",
      "",
      bearer(await token({ aud: undefined })),
      refused("Audiences_in_Jwt_are_not_allowed", "Audiences in Jwt are not allowed"),
    ],
    [
      "another issuer",
      "",
      bearer(await token({ iss: "https://elsewhere.test" })),
      refused("Jwt_issuer_is_not_configured", "Jwt issuer is not configured"),
    ],
    [
      "a payload that was changed",
      "",
      bearer(
        `${head}.${Buffer.from(JSON.stringify({ iss: issuer, aud: "parity", sub: "root", exp: far })).toString("base64url")}.${signature}`,
      ),
      refused("Jwt_verification_fails", "Jwt verification fails"),
    ],
    [
      "no algorithm",
      "",
      bearer(`${none}.${payload}.`),
      { ...refused("", ""), detailsUpTo: "{", details: "jwt_authn_access_denied" },
    ],
    [
      "the other issuer's key",
      "",
      bearer(await otherToken({ iss: issuer })),
      { ...refused("", ""), detailsUpTo: "{", details: "jwt_authn_access_denied" },
    ],
  ];
  return table.map(([name, query, headers, expected, versions = {}]) => [
    `token: ${name}`,
    `/v1/jwt/x${query}`,
    { headers },
    expected,
    versions,
  ]);
}

/**
 * Spellings of a path that a policy denies. One is resolved by Tulle's proxy alone; Envoy refuses it, by a filter that
 * stands before the policies.
 */
function pathRows(): Row[] {
  const denied: Expected = {
    status: 403,
    details: "rbac_access_denied_matched_policy",
    detailsUpTo: "[",
    bodyIncludes: "RBAC: access denied",
  };
  const passed: Expected = { status: 200 };
  const table: readonly (readonly [path: string, expected: Expected])[] = [
    ["/v1/deny-path/x", denied],
    ["/v1/a/../deny-path/x", denied],
    ["/v1/a/..;/deny-path/x", denied],
    ["/v1/a/%2e%2e;/deny-path/x", denied],
    ["/v1/a/%2E.;b=c/deny-path/x", denied],
    ["/v1/a/.%2e;;/deny-path/x", denied],
    ["/v1/%2e;/deny-path/x", denied],
    ["/v1/a\\..;/deny-path/x", denied],
    ["/v1/%2e%2e;/v1/deny-path/%2e;", denied],
    ["/v1/anyone/a..;b", passed],
    ["/v1/anyone/...;b", passed],
    ["/v1/anyone/a.;b/..c;d", passed],
    ["/v1/anyone/x?/..;/%2e%2e;/", passed],
    ["/v1/anyone/..%3b/x", passed],
    // Nothing is decoded twice, here or in what the app gets: a percent sign is a letter of the path.
    ["/v1/anyone/%252e%252e/deny-path/x", { ...passed, receivedPath: "/v1/anyone/%252e%252e/deny-path/x" }],
  ];
  return table.map(([target, expected]) => [`path: ${target}`, target, {}, expected]);
}

/** At the gateway: nobody else chooses a route by claims. */
async function claimRows(): Promise<Row[]> {
  const table: readonly (readonly [
    name: string,
    claims: Readonly<Record<string, unknown>> | undefined,
    headers: Record<string, string>,
    route: string | undefined,
  ])[] = [
    ["a text", { groups: "admin" }, {}, "exact"],
    ["in a list", { groups: ["a", "admin"] }, {}, "exact"],
    ["the first route that matches", { groups: ["dev-a", "admin"] }, {}, "exact"],
    ["prefix", { groups: ["dev-a"] }, {}, "prefix"],
    ["regex", { sub: "t42" }, {}, "regex"],
    ["nested", { realm: { roles: ["admin"] } }, {}, "nested"],
    ["a name with dots", { "https://claims.test/role": "admin" }, {}, "nested-in-brackets"],
    ["present", { beta: "1" }, {}, "present"],
    ["present and no text", { beta: 7 }, {}, "present"],
    ["a word of a scope, and a header", { scope: "b a" }, { "x-there": "1" }, "with-header"],
    ["a word of a scope, and no header", { scope: "b a" }, {}, undefined],
    ["another value", { groups: "adm" }, {}, undefined],
    ["a number", { groups: 7 }, {}, undefined],
    ["no token", undefined, {}, undefined],
    ["a header of that name", undefined, { groups: "admin" }, undefined],
  ];
  return Promise.all(
    table.map(async ([name, claims, headers, chosen]): Promise<Row> => [
      `claims: ${name}`,
      "/v1/anyone/x",
      {
        host: "claims.example.com",
        headers: { ...headers, ...(claims === undefined ? {} : bearer(await token(claims))) },
      },
      chosen === undefined ? { status: 404, flags: "NR", details: "route_not_found" } : { status: 200, route: chosen },
    ]),
  );
}

const roles = ["gateway", "inbound"] as const;
const judged = [...(await ruleRows()), ...(await tokenRows())];
const compared = [...roles.flatMap((role) => rows(role, judged)), ...rows("gateway", await claimRows())];
/** Each proxy says in its own words which path it refused. */
const calls: readonly Call[] = [...compared, ...roles.flatMap((role) => rows(role, pathRows()))];

test("the table has at least 120 rows", () => assert.ok(compared.length >= 120, String(compared.length)));

describe("the same policies on both proxies", () => {
  let mesh: ParityMesh | undefined;
  let traces: Traces;
  const issuerServer = http.createServer((_request, response) => response.end(JSON.stringify({ keys: [otherJwk] })));

  before(
    async () => {
      await new Promise<void>((resolve) => issuerServer.listen(0, "127.0.0.1", resolve));
      const { port } = issuerServer.address() as AddressInfo;
      mesh = await ParityMesh.start({ "policies.yaml": manifests(`http://127.0.0.1:${port}/keys`) });
      await keysAreThere(mesh);
      traces = await traceCalls(mesh, calls, 96);
    },
    { timeout: 150_000 },
  );
  after(async () => {
    await mesh?.stop();
    issuerServer.close();
  });

  for (const [index, call] of calls.entries()) {
    test(call.name, () => {
      const [fromTulle, fromEnvoy] = proxies.map((proxy) => {
        const trace = traces.of(proxy, index);
        const told = call.expected.status === 200 ? trace : withoutCluster(trace);
        return comparable(call, told, mesh!.podOf(call.role, proxy), proxy);
      });
      if (index < compared.length) assert.deepEqual(fromTulle, fromEnvoy);
      for (const proxy of proxies) checkExpected(call, traces.of(proxy, index));
    });
  }
});

/** A push with the fetched keys follows the first one; each proxy takes it in its own time. */
async function keysAreThere(mesh: ParityMesh): Promise<void> {
  const headers = { "x-fetched": await otherToken({}) };
  for (const role of roles) {
    for (const proxy of proxies) await waitForStatus(mesh, { role, path: "/v1/jwt/x", proxy, status: 200, headers });
  }
}
