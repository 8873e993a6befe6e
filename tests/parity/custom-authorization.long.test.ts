// AuthorizationPolicies of the action CUSTOM, end to end on Tulle's proxy and on a stock Envoy, at a gateway and in
// front of an application: the mesh's configuration names the authorizers, a policy says who is asked about what.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import path from "node:path";
import { after, before, describe, test } from "node:test";
import { waitFor } from "../tools/processes.ts";
import { type Call, type Expected, type Role, type Row, rows } from "./call.ts";
import { comparable, withoutCluster } from "./compare.ts";
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

const asking: readonly Row[] = [
  [
    "HTTP: allowed, with headers of both sides",
    "/v1/http/ok?q=1",
    { headers: { "x-asked": "a", "x-hidden": "b", "x-user": "forged" } },
    {
      status: 200,
      headers: { "x-user": "alice", "x-private": null },
      received: { "x-user": "alice", "x-seen": "GET /check/v1/http/ok?q=1 a  100%", "x-private": null },
    },
  ],
  [
    "HTTP: the beginning of a body",
    "/v1/http/ok",
    { method: "POST", body: "a body that is longer than the authorizer wants" },
    { status: 200, received: { "x-seen": "POST /check/v1/http/ok   100% a body that is l" } },
  ],
  [
    "HTTP: refused",
    "/v1/http/deny",
    {},
    refused(401, "ext_authz_denied", {
      bodyIncludes: "who are you?",
      headers: { "x-seen": "GET /check/v1/http/deny   100%", "x-private": null, "x-user": null },
    }),
  ],
  ["HTTP: an authorizer that fails", "/v1/http/broken", {}, refused(503, "ext_authz_error")],
  ["HTTP: one that may fail", "/v1/open/broken", {}, { status: 200 }],
  ["HTTP: one that may fail, and refuses", "/v1/open/deny", {}, refused(401, "ext_authz_denied")],
  ["gRPC: allowed", "/v1/grpc/ok", {}, { status: 200 }],
  ["gRPC: refused", "/v1/grpc/deny", {}, refused(401, "ext_authz_denied", { bodyIncludes: "no" })],
  ["gRPC: an authorizer that fails", "/v1/grpc/broken", {}, refused(403, "ext_authz_error")],
  ["a provider without a Service", "/v1/nowhere/ok", {}, closed("nowhere")],
  ["a provider that nobody knows", "/v1/unknown/ok", {}, closed("unknown")],
  ["on trial", "/v1/unknown-on-trial/ok", {}, { status: 200 }],
  ["nobody is asked", "/v1/free/deny", {}, { status: 200 }],
  ["slashes become one before policies look", "/v1//http//deny", {}, refused(401, "ext_authz_denied")],
];

/** Hosts outside the mesh, which this configuration of the mesh closes. */
const blocked: Expected = { status: 502, details: "direct_response", route: "block_all" };
const outbound: readonly Row[] = [
  ["GET to a host outside the mesh", "/", { host: "outside.test" }, blocked],
  ["CONNECT to a host outside the mesh", "outside.test:443", { method: "CONNECT", host: "outside.test" }, blocked],
  ["a host of the mesh", "/v1/free", { host: "echo.parity.svc.cluster.local" }, { status: 200 }],
];

const roles: readonly Role[] = ["gateway", "inbound"];
const calls: readonly Call[] = [...roles.flatMap((role) => rows(role, asking)), ...rows("outbound", outbound)];

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

/** Every proxy has its endpoints, of both protocols. */
async function authorizersAreThere(mesh: ParityMesh): Promise<void> {
  for (const role of roles) {
    for (const proxy of proxies) {
      for (const provider of ["http", "grpc"]) {
        const name = `${provider} from ${role} ${proxy}`;
        const [call] = rows(role, [[name, `/v1/${provider}/ok`, {}, { status: 200 }]]);
        const isThere = async (): Promise<boolean> =>
          (await mesh.makeCall(call!, proxy, "127.97.200.1")).answers.at(-1)?.status === 200;
        await waitFor(isThere, { what: name, intervalMs: 200 });
      }
    }
  }
}
