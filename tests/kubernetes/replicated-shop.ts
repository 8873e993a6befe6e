// The shop on a cluster with two of each, and requests that come while something happens to it. No request fails.
import assert from "node:assert/strict";
import { after, before, type TestContext } from "node:test";
import { describeFailures, describePace, ShopLoad } from "../e2e/shop-load.ts";
import { kubectl } from "../tools/cluster/kubectl.ts";
import { ClusterShop, installByHelm, uninstallByHelm, untilAvailable } from "./cluster-shop.ts";

/** What two cores carry while pods start on both nodes beside it. */
export const requestsPerSecond = 30;
export const replicated = ["shop/catalog-v1", "shop/catalog-v2", "shop/webapp", "shop/productpage"] as const;
export const gateway = "tulle-system/tulle-ingressgateway";

/** Of proxies: one node of two cores has room for all, programs among them get their share of a core. */
const smallRequests = ["global.proxy.resources.requests.cpu=50m"];

/** Clients are patient: how quick the machine is decides no test. */
const load = { seed: 20_261_128, requestsPerSecond, maxInFlight: 512, minSeconds: 5, timeoutMs: 60_000 };

/** Installed before the file's tests, and uninstalled after them. */
export class ReplicatedShop {
  #shop: ClusterShop | undefined;

  /** `prepare` ends the preparations. */
  constructor(prepare: () => Promise<void> = async () => undefined) {
    before(async () => {
      await installByHelm(smallRequests);
      this.#shop = await ClusterShop.apply();
      for (const each of [...replicated, gateway]) {
        const [namespace = "", name = ""] = each.split("/");
        await kubectl(["scale", "-n", namespace, `deployment/${name}`, "--replicas=2"]);
      }
      await allAvailable();
      await prepare();
    });
    after(async () => {
      await this.#shop?.[Symbol.asyncDispose]();
      await kubectl(["delete", "namespace", "shop", "--ignore-not-found"]);
      await uninstallByHelm();
    });
  }

  get shop(): ClusterShop {
    return this.#shop!;
  }

  async assertNoneFails(t: TestContext, during: (load: ShopLoad) => Promise<void>): Promise<void> {
    const running = await ShopLoad.begin(this.shop, load);
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
}

export async function allAvailable(): Promise<void> {
  await untilAvailable("shop");
  await untilAvailable("tulle-system");
}

export async function rollOut(namespace: string, ...names: readonly string[]): Promise<void> {
  await kubectl(["rollout", "restart", "-n", namespace, ...names.map((name) => `deployment/${name}`)]);
  await rolledOut(namespace, ...names);
}

export async function rolledOut(namespace: string, ...names: readonly string[]): Promise<void> {
  for (const name of names)
    await kubectl(["rollout", "status", "-n", namespace, `deployment/${name}`, "--timeout=180s"], 200_000);
}
