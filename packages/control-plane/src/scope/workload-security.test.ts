// Which policies reach which workload, in which order, and that workloads with the same ones share them.
import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { loadText, MemoryStore } from "@tulle/config";
import { NodeSchema } from "@tulle/xds/envoy/config/core/v3/base_pb";
import { buildSnapshot } from "../snapshot/build-snapshot.ts";
import type { MeshSnapshot } from "../snapshot/mesh-snapshot.ts";
import { parseNode, type Proxy } from "./proxy.ts";
import { workloadSecurity } from "./workload-security.ts";

function proxy(namespace: string, labels: Readonly<Record<string, string>>): Proxy {
  const metadata = { NAMESPACE: namespace, LABELS: labels };
  const parsed = parseNode(create(NodeSchema, { id: `sidecar~127.0.0.1~pod.${namespace}~x`, metadata }));
  assert.ok("proxy" in parsed);
  return parsed.proxy;
}

async function snapshotOf(
  ...policies: readonly (readonly [namespace: string, name: string, spec: string])[]
): Promise<MeshSnapshot> {
  const documents = policies.map(
    ([namespace, name, spec]) =>
      `{ apiVersion: security.tulle.io/v1, kind: AuthorizationPolicy, metadata: { name: ${name}, namespace: ${namespace} }, spec: ${spec} }`,
  );
  const store = new MemoryStore();
  await store.applyAll(loadText(documents.join("\n---\n"), "policies.yaml").resources);
  return buildSnapshot(store);
}

const selector = "{ selector: { matchLabels: { app: a, version: v1 } } }";
const cases: readonly {
  name: string;
  namespace: string;
  labels: Record<string, string>;
  expected: readonly string[];
}[] = [
  {
    name: "all labels",
    namespace: "shop",
    labels: { app: "a", version: "v1", more: "x" },
    expected: ["mesh", "root-a", "shop", "shop-a"],
  },
  { name: "one label of two", namespace: "shop", labels: { app: "a" }, expected: ["mesh", "shop"] },
  { name: "another namespace", namespace: "blog", labels: { app: "a", version: "v1" }, expected: ["mesh", "root-a"] },
];

for (const { name, namespace, labels, expected } of cases) {
  test(`policies that hold: ${name}`, async () => {
    const snapshot = await snapshotOf(
      ["shop", "shop", "{}"],
      ["shop", "shop-a", selector],
      ["tulle-system", "mesh", "{}"],
      ["istio-system", "root-a", selector],
      ["shop", "targets", "{ targetRefs: [{ kind: Gateway, name: g }] }"],
    );
    const { security } = workloadSecurity(snapshot, proxy(namespace, labels));
    assert.deepEqual(
      security?.policies.map((policy) => policy.name),
      expected,
    );
  });
}

test("no policy, nothing in the view", async () => {
  assert.deepEqual(workloadSecurity(await snapshotOf(["shop", "a", "{}"]), proxy("blog", {})), {});
});

test("workloads with the same policies share them", async () => {
  const snapshot = await snapshotOf(["shop", "a", "{}"]);
  const [one, other] = ["a", "b"].map((app) => workloadSecurity(snapshot, proxy("shop", { app })).security);
  assert.ok(one !== undefined && one === other);
});
