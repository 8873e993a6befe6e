// The shop, its gateway and the control plane are rolled under load on a cluster, its nodes are drained in turn, and its
// API server goes away. No request fails.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { describeFailures, describePace, ShopLoad } from "../e2e/shop-load.ts";
import { nodes } from "../tools/cluster/addresses.ts";
import { whileApiServerHangs, whileApiServerIsGone } from "../tools/cluster/api-server.ts";
import { applyObjects, kubectl } from "../tools/cluster/kubectl.ts";
import { ClusterShop, installByHelm, uninstallByHelm, untilAvailable } from "./cluster-shop.ts";

/** What two cores carry while pods start on both nodes beside it. */
const requestsPerSecond = 30;
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
  await applyObjects(replicated.map((each) => budgetOf(each.slice("shop/".length))));
  await untilAvailable("shop");
  await untilAvailable("tulle-system");
});
after(async () => {
  await shop?.[Symbol.asyncDispose]();
  await kubectl(["delete", "namespace", "shop", "--ignore-not-found"]);
  await uninstallByHelm();
});

async function rollOut(namespace: string, ...names: readonly string[]): Promise<void> {
  const deployments = names.map((name) => `deployment/${name}`);
  await kubectl(["rollout", "restart", "-n", namespace, ...deployments]);
  for (const each of deployments)
    await kubectl(["rollout", "status", "-n", namespace, each, "--timeout=180s"], 200_000);
}

/** Of those who drain nodes: the charts bring their own for the gateway and the control plane. */
function budgetOf(name: string): object {
  const [app, version] = name.split("-");
  const matchLabels = { app, ...(version === undefined ? {} : { version }) };
  return {
    apiVersion: "policy/v1",
    kind: "PodDisruptionBudget",
    metadata: { name, namespace: "shop" },
    spec: { maxUnavailable: 1, selector: { matchLabels } },
  };
}

/** As people do it before they take a machine away; it is back afterwards. */
async function drain({ name }: (typeof nodes)[number]): Promise<void> {
  const args = ["drain", name, "--ignore-daemonsets", "--delete-emptydir-data", "--timeout=180s"];
  try {
    await kubectl(args, 200_000);
    await untilAvailable("shop");
    await untilAvailable("tulle-system");
  } finally {
    await kubectl(["uncordon", name]);
  }
}

const changes: readonly { readonly name: string; readonly change: () => Promise<void> }[] = [
  {
    name: "the shop's Deployments are rolled",
    change: () => rollOut("shop", ...replicated.map((each) => each.slice("shop/".length))),
  },
  { name: "the gateway is rolled", change: () => rollOut("tulle-system", "tulle-ingressgateway") },
  { name: "the control plane is rolled", change: () => rollOut("tulle-system", "tulled") },
  ...nodes.map((node) => ({ name: `${node.name} is drained`, change: () => drain(node) })),
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
    await load.after(requestsPerSecond);
    const result = await load.end();
    t.diagnostic(describePace(result));
    assert.equal(result.failed.length, 0, describeFailures(result));
  });
}
