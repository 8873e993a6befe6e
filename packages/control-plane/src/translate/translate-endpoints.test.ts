// Who stands behind a cluster while pods come and go.
import assert from "node:assert/strict";
import { test } from "node:test";
import { loadText, MemoryStore } from "@tulle/config";
import { buildEndpoints } from "../snapshot/build-endpoints.ts";
import { buildSnapshot } from "../snapshot/build-snapshot.ts";
import type { OutboundCluster } from "./outbound-clusters.ts";
import { endpointsOf } from "./translate-endpoints.ts";

const conditions = {
  ready: { ready: true, serving: true, terminating: false },
  starting: { ready: false, serving: false, terminating: false },
  leaving: { ready: false, serving: true, terminating: true },
  ended: { ready: false, serving: false, terminating: true },
  untold: { ready: false },
  leavingUntold: { ready: false, terminating: true },
} as const;

type Condition = keyof typeof conditions;

/** Pods `v1-0`, `v1-1`, … and `v2-0`, …, by the version that they are of. */
async function chosen(pods: Readonly<Record<"v1" | "v2", readonly Condition[]>>, subset?: "v1"): Promise<string[]> {
  const all = Object.entries(pods).flatMap(([version, states]) =>
    states.map((state, index) => ({ name: `${version}-${index}`, version, state })),
  );
  const documents = [
    {
      apiVersion: "v1",
      kind: "Service",
      metadata: { name: "catalog", namespace: "shop" },
      spec: { clusterIP: "10.96.0.7", ports: [{ name: "http", port: 80, targetPort: 3000 }] },
    },
    ...all.map(({ name, version }) => ({
      apiVersion: "v1",
      kind: "Pod",
      metadata: { name, namespace: "shop", labels: { version } },
      spec: { containers: [{ name: "web", image: "web" }] },
    })),
    {
      apiVersion: "discovery.k8s.io/v1",
      kind: "EndpointSlice",
      metadata: { name: "catalog", namespace: "shop", labels: { "kubernetes.io/service-name": "catalog" } },
      addressType: "IPv4",
      ports: [{ name: "http", port: 3000 }],
      endpoints: all.map(({ name, state }, index) => ({
        addresses: [`10.244.0.${index}`],
        conditions: conditions[state],
        targetRef: { kind: "Pod", name },
      })),
    },
  ];
  const { resources, findings } = loadText(documents.map((each) => JSON.stringify(each)).join("\n---\n"), "shop.yaml");
  assert.deepEqual(findings, []);
  const store = new MemoryStore();
  await store.applyAll(resources);
  const snapshot = buildSnapshot(store);
  const service = snapshot.services.find(({ name }) => name === "catalog")!;
  const cluster = {
    name: "catalog",
    service,
    port: service.ports[0]!,
    subset: subset === undefined ? undefined : { name: subset, labels: { version: subset } },
    reach: "all",
  } as unknown as OutboundCluster;
  const found = endpointsOf(cluster, buildEndpoints(store, snapshot));
  return found.map(({ address }) => all[Number(address.split(".")[3])]!.name);
}

for (const { name, v1, v2 = [], subset, expected } of [
  { name: "the ready ones alone", v1: ["ready", "leaving", "starting", "ended"], expected: ["v1-0"] },
  { name: "those that leave, where nobody is ready", v1: ["leaving", "leaving"], expected: ["v1-0", "v1-1"] },
  { name: "none that has stopped to answer", v1: ["leaving", "ended", "starting"], expected: ["v1-0"] },
  { name: "nobody who has not begun to answer", v1: ["starting", "ended", "untold"], expected: [] },
  { name: "who is not ready, and says no more, does not answer", v1: ["leavingUntold"], expected: [] },
  { name: "those that leave of a subset", v1: ["leaving"], v2: ["ready"], subset: "v1", expected: ["v1-0"] },
  { name: "the ready ones of all versions", v1: ["leaving"], v2: ["ready"], expected: ["v2-0"] },
] satisfies readonly {
  readonly name: string;
  readonly v1: readonly Condition[];
  readonly v2?: readonly Condition[];
  readonly subset?: "v1";
  readonly expected: readonly string[];
}[]) {
  test(`endpoints of a cluster: ${name}`, async () => {
    assert.deepEqual(await chosen({ v1, v2 }, subset), expected);
  });
}
