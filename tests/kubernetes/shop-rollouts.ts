// A roll-out of the shop's catalog on a cluster, led by the command line: it ends at once where the new version fails,
// and goes to its end where it does not.
import assert from "node:assert/strict";
import path from "node:path";
import { test } from "node:test";
import { kubectl } from "../tools/cluster/kubectl.ts";
import { tulle } from "../tools/cluster/tulle-command.ts";
import { waitFor } from "../tools/processes.ts";
import { type ClusterShop, shopFolder } from "./cluster-shop.ts";

const kubernetes = ["-n", "shop", "--context", "test"];
const rollout = (command: string, ...args: string[]): Promise<string> =>
  tulle(["rollout", command, "catalog", ...args, ...kubernetes]);

export function rolloutTests(shopOf: () => ClusterShop): void {
  test("a roll-out aborts where the new version fails, and completes where it does not", async () => {
    const shop = shopOf();
    await kubectl(["apply", "-f", path.join(shopFolder, "rollouts/catalog.yaml")]);
    const requests = new AbortController();
    const asking = askUntil(shop, requests.signal);
    try {
      await shop.blowup(100, "v2");
      assert.match(await rollout("start"), /rollout\/catalog started/);
      // Exit code 1: it was aborted.
      await tulle(["rollout", "watch", "catalog", "--timeout", "90", ...kubernetes], 1);
      assert.match(await rollout("history"), /aborted at 20 %/);
      await shop.blowup(0, "v2");
      await rollout("start");
      assert.match(await rollout("watch", "--timeout", "90"), /completed: everything goes to the canary/);
      const phase = ["get", "rollouts.rollouts.tulle.io", "catalog", "-n", "shop", "-o", "jsonpath={.status.phase}"];
      await waitFor(async () => /^completed$/i.test(await kubectl(phase)), { what: "its status to say so" });
    } finally {
      requests.abort();
      await asking;
      await shop.blowup(0);
      await kubectl(["delete", "rollouts.rollouts.tulle.io", "catalog", "-n", "shop"]);
    }
  });
}

/** One after the other: enough for a judgement. */
async function askUntil(shop: ClusterShop, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) await shop.get("/api/catalog/items/1");
}
