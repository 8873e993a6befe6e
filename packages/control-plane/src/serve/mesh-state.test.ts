// Which changes of pods and endpoints make clusters anew, where callers accept the identities behind a Service.
import assert from "node:assert/strict";
import { test } from "node:test";
import { loadText, MemoryStore } from "@tulle/config";
import { ManualClock } from "@tulle/timing/testing";
import { MetricRegistry } from "@tulle/telemetry";
import { AcceptedResources } from "./accepted-resources.ts";
import { type MeshChange, MeshState } from "./mesh-state.ts";
import { controlPlaneMetrics } from "./metrics.ts";

const pod = (name: string, account: string, more = "", ports = ""): string =>
  `{ apiVersion: v1, kind: Pod, metadata: { name: ${name}, namespace: shop, labels: { app: catalog } }, spec: { serviceAccountName: ${account}, containers: [{ name: app${ports} }] }${more} }`;
const slice = (...names: readonly string[]): string =>
  `{ apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: { name: catalog, namespace: shop, labels: { kubernetes.io/service-name: catalog } }, addressType: IPv4, ports: [{ name: http, port: 80 }], endpoints: [${names
    .map((name, index) => `{ addresses: [127.0.0.${index + 1}], targetRef: { kind: Pod, name: ${name} } }`)
    .join(", ")}] }`;

const start = [
  "{ apiVersion: v1, kind: Service, metadata: { name: catalog, namespace: shop }, spec: { selector: { app: catalog }, ports: [{ name: http, port: 80 }] } }",
  pod("one", "catalog"),
  slice("one"),
];
const catalog = "spiffe://cluster.local/ns/shop/sa/catalog";

interface Case {
  readonly name: string;
  readonly trustDomain?: string;
  readonly change: readonly string[];
  /** Undefined where nothing happens at all. */
  readonly expected: { readonly routing: boolean; readonly identities: readonly string[] | undefined } | undefined;
}

const cases: readonly Case[] = [
  {
    name: "another instance with the same account changes endpoints alone",
    trustDomain: "cluster.local",
    change: [pod("two", "catalog"), slice("one", "two")],
    expected: { routing: false, identities: [catalog] },
  },
  {
    name: "an instance with another account changes clusters",
    trustDomain: "cluster.local",
    change: [pod("two", "catalog-next"), slice("one", "two")],
    expected: { routing: true, identities: [catalog, `${catalog}-next`] },
  },
  {
    name: "an instance that leaves with its account changes clusters",
    trustDomain: "cluster.local",
    change: [slice()],
    expected: { routing: true, identities: [] },
  },
  {
    name: "the state of a pod changes nothing",
    trustDomain: "cluster.local",
    change: [pod("one", "catalog", ", status: { phase: Running }")],
    expected: undefined,
  },
  {
    name: "the ports of a pod's containers, which Services name, are looked at again",
    trustDomain: "cluster.local",
    change: [pod("one", "catalog", "", ", ports: [{ name: http, containerPort: 3000 }]")],
    expected: { routing: false, identities: [catalog] },
  },
  {
    name: "without an authority an account means nothing",
    change: [pod("two", "catalog-next"), slice("one", "two")],
    expected: { routing: false, identities: undefined },
  },
];

/** Follows the store at once. */
function meshOf(store: MemoryStore, clock: ManualClock, trustDomain: string | undefined): MeshState {
  return new MeshState({
    store,
    reader: new AcceptedResources(store),
    clock,
    debounce: { quietMs: 0, maxMs: 0 },
    metrics: controlPlaneMetrics(new MetricRegistry(), "test"),
    trustDomain,
  });
}

for (const { name, trustDomain, change, expected } of cases) {
  test(`mesh state: ${name}`, async () => {
    const store = new MemoryStore();
    const apply = (documents: readonly string[]) =>
      store.applyAll(loadText(documents.join("\n---\n"), "mesh.yaml").resources);
    await apply(start);
    const clock = new ManualClock();
    const seen: MeshChange[] = [];
    const mesh = meshOf(store, clock, trustDomain);
    mesh.follow((each) => seen.push(each));
    const before = mesh.snapshot;
    await apply(change);
    clock.pass(0);
    mesh.close();
    assert.deepEqual(
      seen.map(({ routing }) => routing),
      expected === undefined ? [] : [expected.routing],
    );
    assert.equal(mesh.snapshot === before, expected?.routing !== true);
    if (expected !== undefined) assert.deepEqual(mesh.snapshot.services[0]?.identities, expected.identities);
  });
}

test("mesh state: the state of a pod that a ServiceEntry chooses makes it an endpoint", async () => {
  const store = new MemoryStore();
  const apply = (...documents: readonly string[]) =>
    store.applyAll(loadText(documents.join("\n---\n"), "mesh.yaml").resources);
  await apply(
    pod("one", "catalog"),
    "{ apiVersion: networking.istio.io/v1, kind: ServiceEntry, metadata: { name: legacy, namespace: shop }, spec: { hosts: [legacy.test], resolution: STATIC, ports: [{ number: 80, name: http, protocol: HTTP }], workloadSelector: { labels: { app: catalog } } } }",
  );
  const clock = new ManualClock();
  const mesh = meshOf(store, clock, "cluster.local");
  const addresses = (): readonly string[] =>
    (mesh.endpoints.byServicePort.get("shop/legacy.test:80") ?? []).map(({ address }) => address);
  assert.deepEqual(mesh.snapshot.services[0]?.identities, [catalog]);
  assert.deepEqual(addresses(), []);
  const state = (isReady: string): string =>
    `, status: { podIP: 127.0.0.7, conditions: [{ type: Ready, status: "${isReady}" }] }`;
  for (const isReady of ["True", "False"]) {
    await apply(pod("one", "catalog", state(isReady)));
    clock.pass(0);
    assert.deepEqual(addresses(), isReady === "True" ? ["127.0.0.7"] : []);
  }
  mesh.close();
});
