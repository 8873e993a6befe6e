// Shop, gateway and control plane are rolled under load on a cluster, and its API server goes away. No request fails.
import assert from "node:assert/strict";
import { after, before, test, type TestContext } from "node:test";
import { describeFailures, describePace, ShopLoad } from "../e2e/shop-load.ts";
import { nodes } from "../tools/cluster/addresses.ts";
import { whileApiServerHangs, whileApiServerIsGone } from "../tools/cluster/api-server.ts";
import { applyObjects, kubectl } from "../tools/cluster/kubectl.ts";
import { waitFor } from "../tools/processes.ts";
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

const changes: readonly { readonly name: string; readonly change: () => Promise<void> }[] = [
  {
    name: "the shop's Deployments are rolled",
    change: () => rollOut("shop", ...replicated.map((each) => each.slice("shop/".length))),
  },
  { name: "the gateway is rolled", change: () => rollOut("tulle-system", "tulle-ingressgateway") },
  { name: "the control plane is rolled", change: () => rollOut("tulle-system", "tulled") },
];

const load = { seed: 20_261_128, requestsPerSecond, maxInFlight: 512, minSeconds: 5, timeoutMs: 20_000 };

async function assertNoneFails(t: TestContext, during: (load: ShopLoad) => Promise<void>): Promise<void> {
  const running = await ShopLoad.begin(shop, load);
  try {
    await running.after(requestsPerSecond);
    await during(running);
    await running.after(requestsPerSecond);
  } finally {
    const result = await running.end();
    t.diagnostic(describePace(result));
    assert.equal(result.failed.length, 0, describeFailures(result));
  }
}

for (const { name, change } of changes) test(`no request fails while ${name}`, (t) => assertNoneFails(t, change));

/** Nobody has to tell proxies anything meanwhile; what they have is enough. */
const minute = (running: ShopLoad): Promise<void> => running.after(60 * requestsPerSecond);

test("no request fails while the API server hangs for a minute, and what is changed after it takes effect", async (t) => {
  await assertNoneFails(t, (running) => whileApiServerHangs(() => minute(running)));
  await assertFollowed(t, "after-a-hang", "/items");
});

test("no request fails while the API server is replaced, and what is changed after it takes effect", async (t) => {
  await assertNoneFails(t, () => whileApiServerIsGone(async () => undefined));
  await assertFollowed(t, "after-a-restart", "/items/1");
});

/** A route to the catalog that was not there before answers at every gateway. */
async function assertFollowed(t: TestContext, name: string, uri: string): Promise<void> {
  const route = {
    apiVersion: "networking.tulle.io/v1",
    kind: "VirtualService",
    metadata: { name, namespace: "shop" },
    spec: {
      hosts: ["*"],
      gateways: ["shop-gateway"],
      http: [
        {
          match: [{ uri: { exact: uri } }],
          route: [{ destination: { host: "catalog" } }],
        },
      ],
    },
  };
  for (const node of nodes) assert.equal((await shop.getBy(node, uri)).status, 404);
  await applyObjects([route]);
  t.after(() => kubectl(["delete", "virtualservices.networking.tulle.io", name, "-n", "shop"]));
  for (const node of nodes) {
    const answers = async (): Promise<boolean> => (await shop.getBy(node, uri)).status === 200;
    await waitFor(answers, { what: `the route ${name} at ${node.name}`, intervalMs: 100 });
  }
}
