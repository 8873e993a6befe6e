// Shop, gateway and control plane are rolled under load on a cluster, and its API server goes away. No request fails.
import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import type { ShopLoad } from "../e2e/shop-load.ts";
import { nodes } from "../tools/cluster/addresses.ts";
import { whileApiServerHangs, whileApiServerIsGone } from "../tools/cluster/api-server.ts";
import { applyObjects, kubectl } from "../tools/cluster/kubectl.ts";
import { waitFor } from "../tools/processes.ts";
import type { ClusterPod } from "./cluster-shop.ts";
import { ReplicatedShop, replicated, requestsPerSecond, rollOut } from "./replicated-shop.ts";

const shop = new ReplicatedShop();

const changes: readonly { readonly name: string; readonly change: () => Promise<void> }[] = [
  {
    name: "the shop's Deployments are rolled",
    change: () => rollOut("shop", ...replicated.map((each) => each.slice("shop/".length))),
  },
  { name: "the gateway is rolled", change: () => rollOut("tulle-system", "tulle-ingressgateway") },
  { name: "the control plane is rolled", change: () => rollOut("tulle-system", "tulled") },
];

for (const { name, change } of changes) test(`no request fails while ${name}`, (t) => shop.assertNoneFails(t, change));

/** Nobody has to tell proxies anything meanwhile; what they have is enough. */
const minute = (running: ShopLoad): Promise<void> => running.after(60 * requestsPerSecond);

test("no request fails while the API server hangs for a minute, and what is changed after it takes effect", async (t) => {
  await shop.assertNoneFails(t, (running) => whileApiServerHangs(() => minute(running)));
  await assertFollowed(t, "after-a-hang", "/items");
});

test("no request fails while the API server is replaced, and what is changed after it takes effect", async (t) => {
  await shop.assertNoneFails(t, () => whileApiServerIsGone(async () => undefined));
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
  for (const node of nodes) assert.equal((await shop.shop.getBy(node, uri)).status, 404);
  await applyObjects([route]);
  t.after(() => kubectl(["delete", "virtualservices.networking.tulle.io", name, "-n", "shop"]));
  for (const node of nodes) {
    const answers = async (): Promise<boolean> => (await shop.shop.getBy(node, uri)).status === 200;
    await waitFor(answers, { what: `the route ${name} at ${node.name}`, intervalMs: 100 });
  }
  let counted: string | undefined;
  let every: string;
  const countsAll = async (): Promise<boolean> => {
    [counted, every] = await Promise.all([reconciled(name), everyProxy()]);
    return counted === every;
  };
  const details = (): string => `it says "${counted}", not "${every}"`;
  await waitFor(countsAll, {
    what: "the status to count the proxies of both control planes",
    details,
    intervalMs: 500,
  });
}

interface Shown {
  readonly status?: { readonly conditions?: readonly { readonly reason: string; readonly message: string }[] };
}

async function reconciled(name: string): Promise<string | undefined> {
  const args = ["get", "virtualservices.networking.tulle.io", name, "-n", "shop", "-o", "json"];
  const { status } = JSON.parse(await kubectl(args)) as Shown;
  return status?.conditions?.find(({ reason }) => reason === "UpToDate")?.message;
}

/** Of a sidecar, and of a gateway. */
const proxyNames = ["tulle-proxy", "istio-proxy"];

async function everyProxy(): Promise<string> {
  const { items } = JSON.parse(await kubectl(["get", "pods", "-A", "-o", "json"])) as { items: readonly ClusterPod[] };
  const { length } = items.filter(({ metadata, spec: { containers, initContainers = [] } }) => {
    const isProxy = [...containers, ...initContainers].some(({ name }) => proxyNames.includes(name));
    return isProxy && metadata.deletionTimestamp === undefined;
  });
  return `${length} of ${length} proxies have it`;
}
