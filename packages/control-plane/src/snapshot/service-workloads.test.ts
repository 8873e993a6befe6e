// Who is behind a Service, and whether HTTP/1.1 to it becomes HTTP/2.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { MeshResource } from "@tulle/config";
import { buildSnapshot } from "./build-snapshot.ts";
import type { ResourceReader } from "./resource-reader.ts";

const sidecar = { "security.istio.io/tlsMode": "istio" };

interface PodRow {
  readonly name: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly account?: string;
}

function reader(pods: readonly PodRow[], endpoints: readonly string[], mesh: string): ResourceReader {
  const namespace = "shop";
  const resources = [
    {
      kind: "Service",
      metadata: { name: "catalog", namespace },
      spec: { selector: {}, ports: [{ name: "http", port: 80 }] },
    },
    ...pods.map(({ name, labels = {}, account }) => ({
      kind: "Pod",
      metadata: { name, namespace, labels },
      spec: { ...(account === undefined ? {} : { serviceAccountName: account }), containers: [] },
    })),
    {
      kind: "EndpointSlice",
      metadata: { name: "catalog", namespace, labels: { "kubernetes.io/service-name": "catalog" } },
      endpoints: endpoints.map((name) => ({
        addresses: ["127.0.0.2"],
        targetRef: { kind: "Pod", name },
        ...(name === "gone" ? { conditions: { ready: false, serving: true, terminating: true } } : {}),
      })),
    },
    ...(mesh === ""
      ? []
      : [{ kind: "ConfigMap", metadata: { name: "tulle", namespace: "tulle-system" }, data: { mesh } }]),
  ] as unknown as readonly MeshResource[];
  const list = (kind: string): readonly MeshResource[] => resources.filter((resource) => resource.kind === kind);
  return {
    list,
    get: (kind: string, _namespace: string, name: string) => list(kind).find((one) => one.metadata.name === name),
  } as unknown as ResourceReader;
}

const pods: readonly PodRow[] = [
  { name: "a", labels: sidecar, account: "one" },
  { name: "b", labels: sidecar },
  { name: "bare" },
];
const identity = (account: string): string => `spiffe://cluster.local/ns/shop/sa/${account}`;

for (const { name, endpoints, mesh = "", identities, isUpgraded } of [
  { name: "all have sidecars", endpoints: ["a", "b"], identities: ["default", "one"], isUpgraded: true },
  { name: "the mesh asks", endpoints: ["a"], mesh: "h2UpgradePolicy: UPGRADE", identities: ["one"], isUpgraded: true },
  { name: "one has no sidecar", endpoints: ["a", "bare"], identities: ["default", "one"] },
  { name: "one is no pod of the mesh", endpoints: ["a", "elsewhere"], identities: ["one"] },
  {
    name: "one has left, and its slice does not know",
    endpoints: ["a", "gone"],
    identities: ["one"],
    isUpgraded: true,
  },
  { name: "nobody", endpoints: [], identities: [] },
  { name: "the mesh forbids it", endpoints: ["a"], mesh: "h2UpgradePolicy: DO_NOT_UPGRADE", identities: ["one"] },
] as const) {
  test(`behind a Service: ${name}`, () => {
    const { services } = buildSnapshot(reader(pods, endpoints, mesh), { trustDomain: "cluster.local" });
    const expected = { identities: identities.map(identity), isUpgraded: isUpgraded ?? false };
    assert.deepEqual({ identities: services[0]!.identities, isUpgraded: services[0]!.isUpgraded ?? false }, expected);
  });
}
