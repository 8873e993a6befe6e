// Everything changes under load on a cluster: the shop, its gateway and the control plane are rolled, each node is
// drained in turn, the API server is away. No request fails.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { describeFailures, describePace, ShopLoad } from "../e2e/shop-load.ts";
import { applyObjects, kubectl } from "../tools/cluster/kubectl.ts";
import { ClusterShop, installByHelm, uninstallByHelm, untilAvailable } from "./cluster-shop.ts";

const requestsPerSecond = 60;
const replicated = ["shop/catalog-v1", "shop/catalog-v2", "shop/webapp", "shop/productpage"] as const;
const gateway = "tulle-system/tulle-ingressgateway";

let shop: ClusterShop;

before(async () => {
  await installByHelm();
  shop = await ClusterShop.apply();
  for (const each of [...replicated, gateway]) {
    const [namespace = "", name = ""] = each.split("/");
    await kubectl(["scale", "-n", namespace, `deployment/${name}`, "--replicas=2"]);
  }
  await applyObjects([...replicated, gateway].map(budget));
  await untilAvailable("shop");
  await untilAvailable("tulle-system");
});
after(async () => {
  await shop?.[Symbol.asyncDispose]();
  await kubectl(["delete", "namespace", "shop", "--ignore-not-found"]);
  await uninstallByHelm();
});

/** Of two one stays, whoever drains their node. */
function budget(deployment: string): object {
  const [namespace = "", name = ""] = deployment.split("/");
  const [app = name, version] = name.split(/-(?=v\d)/);
  const matchLabels = version === undefined ? { app } : { app, version };
  return {
    apiVersion: "policy/v1",
    kind: "PodDisruptionBudget",
    metadata: { name, namespace },
    spec: { minAvailable: 1, selector: { matchLabels } },
  };
}

async function rollOut(namespace: string, ...names: readonly string[]): Promise<void> {
  const deployments = names.map((name) => `deployment/${name}`);
  await kubectl(["rollout", "restart", "-n", namespace, ...deployments]);
  for (const each of deployments)
    await kubectl(["rollout", "status", "-n", namespace, each, "--timeout=180s"], 200_000);
}

async function drain(node: string): Promise<void> {
  const args = ["drain", node, "--ignore-daemonsets", "--delete-emptydir-data", "--timeout=240s"];
  await kubectl(args, 260_000);
  for (const namespace of ["shop", "tulle-system"]) await untilAvailable(namespace);
  await kubectl(["uncordon", node]);
}

const changes: readonly { readonly name: string; readonly change: () => Promise<void> }[] = [
  {
    name: "the shop's Deployments are rolled",
    change: () => rollOut("shop", ...replicated.map((each) => each.slice("shop/".length))),
  },
  { name: "the gateway is rolled", change: () => rollOut("tulle-system", "tulle-ingressgateway") },
  { name: "the control plane is rolled", change: () => rollOut("tulle-system", "tulled") },
  { name: "the second node is drained", change: () => drain("node2") },
  { name: "the first node is drained", change: () => drain("node1") },
];

for (const { name, change } of changes) {
  test(`no request fails while ${name}`, async (t) => {
    const load = await ShopLoad.begin(shop, {
      seed: 20_261_128,
      requestsPerSecond,
      maxInFlight: 64,
      minSeconds: 5,
      timeoutMs: 20_000,
    });
    await load.after(requestsPerSecond);
    await change();
    await pause(1000);
    const result = await load.end();
    t.diagnostic(describePace(result));
    assert.equal(result.failed.length, 0, describeFailures(result));
  });
}
