// What a proxy without a certificate is refused: by policies of the servers, as far as their workloads have proxies,
// and by rules.
import assert from "node:assert/strict";
import { test } from "node:test";
import { loadText, MemoryStore } from "@tulle/config";
import { buildEndpoints } from "../snapshot/build-endpoints.ts";
import { buildSnapshot } from "../snapshot/build-snapshot.ts";
import type { Proxy } from "./proxy.ts";
import { scope } from "./scope.ts";

const stock: Proxy = {
  nodeId: "sidecar~127.9.9.1~stock-1.shop~x",
  type: "sidecar",
  address: "127.9.9.1",
  name: "stock-1",
  namespace: "shop",
  labels: {},
  clusterId: "local",
  version: "",
  interceptionMode: "NONE",
  appAddress: "127.9.9.101",
  podPorts: [],
  withoutCertificate: true,
};

const service = `
{ apiVersion: v1, kind: Service, metadata: { name: a, namespace: shop }, spec: { selector: { app: a }, ports: [{ port: 80, targetPort: 3000 }] } }`;

function pods(
  ...all: readonly { readonly hasProxy?: boolean; readonly isReady?: boolean; readonly version?: string }[]
): string {
  const documents = all.map(({ hasProxy = true, version = "v1" }, index) => {
    const mode = hasProxy ? ", security.istio.io/tlsMode: istio" : "";
    return `{ apiVersion: v1, kind: Pod, metadata: { name: a-${index}, namespace: shop, labels: { app: a, version: ${version}${mode} } }, spec: { containers: [{ name: app }] } }`;
  });
  const endpoints = all.map(
    ({ isReady = true }, index) =>
      `{ addresses: [127.9.8.${index + 1}], conditions: { ready: ${isReady} }, targetRef: { kind: Pod, name: a-${index}, namespace: shop } }`,
  );
  const slice = `{ apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: { name: a, namespace: shop, labels: { kubernetes.io/service-name: a } }, addressType: IPv4, ports: [{ port: 3000 }], endpoints: [${endpoints.join()}] }`;
  return [...documents, slice].join("\n---\n");
}

const strict = `{ apiVersion: security.tulle.io/v1, kind: PeerAuthentication, metadata: { name: default, namespace: shop }, spec: { mtls: { mode: STRICT } } }`;
const strictOfV2 = `{ apiVersion: security.tulle.io/v1, kind: PeerAuthentication, metadata: { name: v2, namespace: shop }, spec: { selector: { matchLabels: { version: v2 } }, mtls: { mode: STRICT } } }`;
const rule = (policy: string): string =>
  `{ apiVersion: networking.tulle.io/v1, kind: DestinationRule, metadata: { name: a, namespace: shop }, spec: { host: a, ${policy} } }`;

/** The port has no name: there is a cluster for requests and one for connections. */
const whole = ["outbound|80||a.shop.svc.cluster.local", "outbound-tcp|80||a.shop.svc.cluster.local"];
const subset = ["outbound|80|v1|a.shop.svc.cluster.local", "outbound-tcp|80|v1|a.shop.svc.cluster.local"];
const cases: readonly {
  readonly name: string;
  readonly documents: readonly string[];
  readonly refused?: readonly string[];
}[] = [
  { name: "nothing without a policy, where PERMISSIVE holds", documents: [pods({})] },
  { name: "a STRICT port", documents: [pods({}), strict], refused: whole },
  { name: "nothing whose workload has no proxy", documents: [pods({ hasProxy: false }), strict] },
  { name: "nothing where one of the workloads takes plain text", documents: [pods({}, { version: "v2" }), strictOfV2] },
  { name: "a STRICT port whose pods are not ready", documents: [pods({ isReady: false }), strict], refused: whole },
  { name: "nothing that nobody is behind, since it may be anybody", documents: [pods(), strict] },
  {
    name: "what a rule says, and not the subset that says otherwise",
    documents: [
      pods({}),
      rule(
        "trafficPolicy: { tls: { mode: ISTIO_MUTUAL } }, subsets: [{ name: v1, labels: { version: v1 }, trafficPolicy: { tls: { mode: DISABLE } } }]",
      ),
    ],
    refused: whole,
  },
  {
    name: "a STRICT port, though a rule asks for plain text",
    documents: [
      pods({}),
      strict,
      rule("trafficPolicy: { tls: { mode: DISABLE } }, subsets: [{ name: v1, labels: { version: v1 } }]"),
    ],
    refused: [...whole, ...subset],
  },
  {
    name: "nothing where the rule has TLS of its own",
    documents: [pods({}), strict, rule("trafficPolicy: { tls: { mode: SIMPLE, sni: a } }")],
  },
];

for (const { name, documents, refused } of cases) {
  test(`a proxy without a certificate is refused ${name}`, async () => {
    const { resources, findings } = loadText([service, ...documents].join("\n---\n"), "mesh.yaml");
    assert.deepEqual(
      findings.filter(({ severity }) => severity === "error"),
      [],
    );
    const store = new MemoryStore();
    await store.applyAll(resources);
    const snapshot = buildSnapshot(store, { trustDomain: "cluster.local" });
    const view = scope(snapshot, stock, buildEndpoints(store, snapshot));
    assert.deepEqual(view.routes.value.refusedClusters, refused);
    const { withoutCertificate: _none, ...proven } = stock;
    assert.equal(scope(snapshot, proven, buildEndpoints(store, snapshot)).routes.value.refusedClusters, undefined);
    const open = buildSnapshot(store);
    assert.equal(
      scope(open, stock, buildEndpoints(store, open)).routes.value.refusedClusters,
      undefined,
      "no authority",
    );
  });
}
