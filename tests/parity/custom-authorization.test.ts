// AuthorizationPolicies of the action CUSTOM, end to end on Tulle's proxy and on a stock Envoy, at a gateway and in
// front of an application: the mesh's configuration names the authorizers, a policy says who is asked about what.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { waitFor } from "../tools/processes.ts";
import { type Call, type Expected, requestBytes, type Role } from "./call.ts";
import { comparable, type Trace } from "./compare.ts";
import { checkExpected } from "./expectation.ts";
import { ParityMesh, proxies } from "./parity-mesh.ts";
import { traceCalls, type Traces } from "./trace-calls.ts";

const authorizer = "authorizer.parity.svc.cluster.local";
const http = { service: authorizer, port: 80, timeout: "5s" };

const meshConfig = {
  pathNormalization: { normalization: "MERGE_SLASHES" },
  outboundTrafficPolicy: { mode: "REGISTRY_ONLY" },
  extensionProviders: [
    {
      name: "http",
      envoyExtAuthzHttp: {
        ...http,
        pathPrefix: "/check",
        includeRequestHeadersInCheck: ["x-asked"],
        includeAdditionalHeadersInCheck: { "x-fixed": "100%" },
        includeRequestBodyInCheck: { maxRequestBytes: 16, allowPartialMessage: true },
        headersToUpstreamOnAllow: ["x-user", "x-seen"],
        headersToDownstreamOnDeny: ["x-seen"],
        headersToDownstreamOnAllow: ["x-user"],
        statusOnError: "503",
      },
    },
    { name: "open", envoyExtAuthzHttp: { ...http, failOpen: true, headersToDownstreamOnDeny: ["x-seen"] } },
    { name: "grpc", envoyExtAuthzGrpc: { service: authorizer, port: 9191, timeout: "5s" } },
    { name: "nowhere", envoyExtAuthzGrpc: { service: "nowhere.parity.svc.cluster.local", port: 9191 } },
  ],
};

function policy(provider: string, annotations?: object): object {
  const name = annotations === undefined ? provider : `${provider}-on-trial`;
  return {
    apiVersion: "security.istio.io/v1",
    kind: "AuthorizationPolicy",
    metadata: { name, namespace: "parity", ...(annotations === undefined ? {} : { annotations }) },
    spec: {
      action: "CUSTOM",
      provider: { name: provider },
      rules: [{ to: [{ operation: { paths: [`/v1/${name}/*`] } }] }],
    },
  };
}

const manifests = [
  {
    apiVersion: "v1",
    kind: "ConfigMap",
    metadata: { name: "istio", namespace: "istio-system" },
    data: { mesh: JSON.stringify(meshConfig) },
  },
  {
    apiVersion: "v1",
    kind: "Service",
    metadata: { name: "authorizer", namespace: "parity" },
    spec: {
      selector: { app: "authorizer" },
      ports: [
        { name: "http", port: 80, targetPort: "http" },
        { name: "grpc", port: 9191, targetPort: "grpc" },
      ],
    },
  },
  {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: { name: "authorizer", namespace: "parity" },
    spec: {
      replicas: 1,
      selector: { matchLabels: { app: "authorizer" } },
      template: {
        metadata: {
          labels: { app: "authorizer", "sidecar.tulle.io/inject": "false" },
          annotations: { "local.tulle.io/command.authorizer": '["node", "authorizer-program.ts"]' },
        },
        spec: {
          containers: [
            {
              name: "authorizer",
              ports: [
                { name: "http", containerPort: 3000 },
                { name: "grpc", containerPort: 3001 },
              ],
              readinessProbe: { httpGet: { path: "/ready", port: "http" } },
            },
          ],
        },
      },
    },
  },
  ...["http", "open", "grpc", "nowhere", "unknown"].map((provider) => policy(provider)),
  policy("unknown", { "istio.io/dry-run": "true" }),
];

const refused = (status: number, details: string, more: Partial<Expected> = {}): Expected => ({
  status,
  details,
  flags: "UAEX",
  ...more,
});
const closed = (provider: string): Expected => ({
  status: 403,
  details: `rbac_access_denied_matched_policy[ns[parity]-policy[${provider}]-rule[0]-deny-due-to-bad-CUSTOM-action]`,
  bodyIncludes: "RBAC: access denied",
});

interface Row {
  readonly name: string;
  readonly path: string;
  readonly method?: string;
  readonly body?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly expected: Expected;
}

const rows: readonly Row[] = [
  {
    name: "HTTP: allowed, with headers of both sides",
    path: "http/ok?q=1",
    headers: { "x-asked": "a", "x-hidden": "b", "x-user": "forged" },
    expected: {
      status: 200,
      headers: { "x-user": "alice", "x-private": null },
      received: { "x-user": "alice", "x-seen": "GET /check/v1/http/ok?q=1 a  100%", "x-private": null },
    },
  },
  {
    name: "HTTP: the beginning of a body",
    path: "http/ok",
    method: "POST",
    body: "a body that is longer than the authorizer wants",
    expected: { status: 200, received: { "x-seen": "POST /check/v1/http/ok   100% a body that is l" } },
  },
  {
    name: "HTTP: refused",
    path: "http/deny",
    expected: refused(401, "ext_authz_denied", {
      bodyIncludes: "who are you?",
      headers: { "x-seen": "GET /check/v1/http/deny   100%", "x-private": null, "x-user": null },
    }),
  },
  { name: "HTTP: an authorizer that fails", path: "http/broken", expected: refused(503, "ext_authz_error") },
  { name: "HTTP: one that may fail", path: "open/broken", expected: { status: 200 } },
  { name: "HTTP: one that may fail, and refuses", path: "open/deny", expected: refused(401, "ext_authz_denied") },
  { name: "gRPC: allowed", path: "grpc/ok", expected: { status: 200 } },
  { name: "gRPC: refused", path: "grpc/deny", expected: refused(401, "ext_authz_denied", { bodyIncludes: "no" }) },
  { name: "gRPC: an authorizer that fails", path: "grpc/broken", expected: refused(403, "ext_authz_error") },
  { name: "a provider without a Service", path: "nowhere/ok", expected: closed("nowhere") },
  { name: "a provider that nobody knows", path: "unknown/ok", expected: closed("unknown") },
  { name: "on trial", path: "unknown-on-trial/ok", expected: { status: 200 } },
  { name: "nobody is asked", path: "free/deny", expected: { status: 200 } },
  { name: "slashes become one before policies look", path: "/http//deny", expected: refused(401, "ext_authz_denied") },
];

/** Hosts outside the mesh, which this configuration of the mesh closes. */
const outbound: readonly Call[] = [
  ...["GET", "CONNECT"].map((method): Call => {
    const target = method === "GET" ? "/" : "outside.test:443";
    return {
      name: `outbound: ${method} to a host outside the mesh`,
      role: "outbound",
      methods: [method],
      bytes: requestBytes("outbound", target, { method, host: "outside.test" }),
      expected: { status: 502, details: "direct_response", route: "block_all" },
    };
  }),
  {
    name: "outbound: a host of the mesh",
    role: "outbound",
    methods: ["GET"],
    bytes: requestBytes("outbound", "/v1/free", { host: "echo.parity.svc.cluster.local" }),
    expected: { status: 200 },
  },
];

const roles: readonly Role[] = ["gateway", "inbound"];
const calls: readonly Call[] = [
  ...roles.flatMap((role) =>
    rows.map(({ name, path: rest, method = "GET", body, headers = {}, expected }): Call => ({
      name: `${role}: ${name}`,
      role,
      methods: [method],
      bytes: requestBytes(role, `/v1/${rest}`, { method, headers, ...(body === undefined ? {} : { body }) }),
      expected,
    })),
  ),
  ...outbound,
];

describe("policies that ask an authorizer, on both proxies", () => {
  let mesh: ParityMesh | undefined;
  let traces: Traces;

  before(
    async () => {
      const program = await readFile(path.join(import.meta.dirname, "authorizer-program.ts"), "utf8");
      const text = manifests.map((each) => JSON.stringify(each)).join("\n---\n");
      mesh = await ParityMesh.start({ "authorizers.yaml": text, "authorizer-program.ts": program });
      await authorizersAreThere(mesh);
      traces = await traceCalls(mesh, calls, 97);
    },
    { timeout: 150_000 },
  );
  after(() => mesh?.stop());

  for (const [index, call] of calls.entries()) {
    test(call.name, () => {
      const [fromTulle, fromEnvoy] = proxies.map((proxy) => {
        const trace = traces.of(proxy, index);
        return comparable(call, withoutCluster(trace), mesh!.podOf(call.role, proxy), proxy);
      });
      assert.deepEqual(fromTulle, fromEnvoy);
      for (const proxy of proxies) checkExpected(call, traces.of(proxy, index));
    });
  }
});

/**
 * Envoy logs the cluster that a refused request would have gone to; Tulle has not looked for it
 * (differences-from-envoy.md).
 */
function withoutCluster({ outcome, lines }: Trace): Trace {
  return { outcome, lines: lines.map((line) => ({ ...line, cluster: "(any)" })) };
}

/** Every proxy has its endpoints, of both protocols. */
async function authorizersAreThere(mesh: ParityMesh): Promise<void> {
  for (const role of roles) {
    for (const proxy of proxies) {
      for (const provider of ["http", "grpc"]) {
        const name = `${provider} from ${role} ${proxy}`;
        const bytes = requestBytes(role, `/v1/${provider}/ok`, {});
        const call: Call = { name, role, methods: ["GET"], bytes, expected: { status: 200 } };
        const isThere = async (): Promise<boolean> =>
          (await mesh.makeCall(call, proxy, "127.97.200.1")).answers.at(-1)?.status === 200;
        await waitFor(isThere, { what: name, intervalMs: 200 });
      }
    }
  }
}
