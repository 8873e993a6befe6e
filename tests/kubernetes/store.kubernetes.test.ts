// The store on a real API server: what is there when it opens, what changes, what is gone, and what is written.
import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { inTime, waitFor } from "../tools/processes.ts";
import { KubernetesClient, KubernetesStore, kubeconfigAccess } from "@tulle/kubernetes";
import { Logging } from "@tulle/telemetry";
import { systemClock } from "@tulle/timing";
import { applyObjects, deleteNamespace, kubectl } from "../tools/cluster/kubectl.ts";

async function openStore(t: TestContext): Promise<KubernetesStore> {
  const access = await kubeconfigAccess({ environment: process.env, clock: systemClock });
  assert.ok(access, "no KUBECONFIG: run this by npm run test:kubernetes");
  const client = new KubernetesClient(access, "tulle-test");
  const log = new Logging().logger("store");
  const opened = KubernetesStore.open({
    client,
    analyze: () => [],
    clock: systemClock,
    log,
    revision: "default",
    withIstioGroups: false,
  });
  const store = await inTime(opened, "the store to open");
  t.after(async () => {
    await store.close();
    await client.close();
  });
  return store;
}

const service = (namespace: string, name: string, port: number) => ({
  apiVersion: "v1",
  kind: "Service",
  metadata: { name, namespace },
  spec: { selector: { app: name }, ports: [{ name: "http", port }] },
});
const namespaceObject = (name: string) => ({ apiVersion: "v1", kind: "Namespace", metadata: { name } });

test("what is there when it opens, and each change after it", async (t) => {
  t.after(() => deleteNamespace("store-a"));
  await applyObjects([namespaceObject("store-a"), service("store-a", "one", 80)]);
  const store = await openStore(t);
  assert.equal(store.get("Service", "store-a", "one")?.spec.ports[0]?.port, 80);
  assert.ok(store.get("Namespace", "", "store-a"));
  const [first] = store.list("Service", "default");
  assert.equal(first?.metadata.name, "kubernetes");
  await applyObjects([service("store-a", "one", 81), service("store-a", "two", 82)]);
  await waitFor(() => store.get("Service", "store-a", "one")?.spec.ports[0]?.port === 81, { what: "the change" });
  await waitFor(() => store.get("Service", "store-a", "two"), { what: "the second" });
  await kubectl(["delete", "service", "two", "-n", "store-a"]);
  await waitFor(() => store.get("Service", "store-a", "two") === undefined, { what: "the second to go" });
});

test("a write counts once it resolves, leaves what others set, and changes nothing twice", async (t) => {
  t.after(() => deleteNamespace("store-b"));
  await applyObjects([namespaceObject("store-b"), service("store-b", "one", 80)]);
  const store = await openStore(t);
  const present = store.get("Service", "store-b", "one")!;
  const metadata = { name: "one", namespace: "store-b", annotations: { "tulle.io/note": "a" } };
  const wanted = { ...present, metadata };
  assert.equal((await store.apply(wanted)).outcome, "configured");
  assert.equal(store.get("Service", "store-b", "one")?.metadata.annotations?.["tulle.io/note"], "a");
  assert.equal((await store.apply(wanted)).outcome, "unchanged");
  const { managedFields } = JSON.parse(
    await kubectl(["get", "service", "one", "-n", "store-b", "-o", "json", "--show-managed-fields"]),
  ).metadata as { managedFields: readonly { manager: string }[] };
  assert.ok(managedFields.some(({ manager }) => manager === "tulle"));
  const account = {
    apiVersion: "v1",
    kind: "ServiceAccount",
    metadata: { name: "new", namespace: "store-b" },
  } as const;
  assert.equal((await store.apply(account)).outcome, "created");
  await store.delete({ kind: "ServiceAccount", namespace: "store-b", name: "new" }, { atOnce: true });
  assert.equal(store.get("ServiceAccount", "store-b", "new"), undefined);
});

test("what the API server refuses is said in its words", async (t) => {
  const store = await openStore(t);
  const nowhere = { apiVersion: "v1", kind: "ServiceAccount", metadata: { name: "a", namespace: "nowhere" } } as const;
  await assert.rejects(store.apply(nowhere), { name: "StoreRefusal", message: /namespaces "nowhere" not found/ });
});

test("no Secret is read that nothing names", async (t) => {
  t.after(() => deleteNamespace("store-c"));
  const secret = {
    apiVersion: "v1",
    kind: "Secret",
    metadata: { name: "s", namespace: "store-c" },
    stringData: { a: "b" },
  };
  await applyObjects([namespaceObject("store-c"), secret]);
  const store = await openStore(t);
  assert.deepEqual(store.list("Secret"), []);
});
