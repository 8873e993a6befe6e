// A roll-out of the catalog's second version, as a user of the sample has it: with the fault it undoes itself, without
// it completes, and the manifests stay as they are.
import assert from "node:assert/strict";
import { readFile, stat, writeFile } from "node:fs/promises";
import path from "node:path";
import { describe, test } from "node:test";
import { endpoints, type RolloutView } from "@tulle/config/api";
import { freePort, waitFor } from "../tools/processes.ts";
import { RolloutLoad } from "./rollout-load.ts";
import { useRunningShop } from "./running-shop.ts";
import { httpRequest, type ShopInstance } from "./shop-instance.ts";

const key = { namespace: "shop", name: "catalog" };

describe("a roll-out of the catalog", () => {
  let shop: ShopInstance;
  useRunningShop("Tulle's proxy", (running) => (shop = running));
  const view = (): Promise<RolloutView> => shop.api().call(endpoints.rollout, key);
  const untilPhase = (...phases: readonly RolloutView["phase"][]): Promise<RolloutView> =>
    waitFor(
      async () => {
        const now = await view();
        return phases.includes(now.phase) && now;
      },
      { what: phases.join(" or ") },
    );
  const fault = async (active: boolean): Promise<void> => {
    const { app } = await shop.pod("catalog-v2");
    const body = JSON.stringify({ active, type: "500", percentage: 100 });
    const answer = await httpRequest(`http://${app!.address}:${app!.port}/blowup`, { method: "POST", body });
    assert.equal(answer.status, 200);
  };

  test("undoes itself with the fault, completes without, and touches no file", async (t) => {
    const file = path.join(shop.folder, "rollouts", "catalog.yaml");
    const touched = [file, path.join(shop.folder, "catalog.yaml")];
    const before = await Promise.all(touched.map(async (each) => [await readFile(each), (await stat(each)).mtimeMs]));
    assert.match(await shop.mustTulle("apply", "-f", file), /rollout\/catalog created/);
    assert.equal((await view()).phase, "Idle");
    await using load = new RolloutLoad(shop);
    await waitFor(() => load.v1 > 0 && load.v2 > 0, { what: "both versions, as without a roll-out" });

    // Others have the same shop after this test, however it ends.
    t.after(() => fault(false));
    await fault(true);
    assert.match(await shop.mustTulle("rollout", "start", "catalog"), /rollout\/catalog started/);
    const aborted = await untilPhase("Aborted", "Completed");
    assert.equal(aborted.phase, "Aborted", aborted.message);
    assert.match(
      aborted.message,
      /success-rate: 0 % \(\d+ failed of \d+ requests, seen by clients; wanted at least 95 %\)/,
    );
    assert.equal(aborted.weight, 0);
    assert.ok(aborted.step <= 3, "half of the requests never went there");
    await shop.waitForSync();
    load.forget();
    await waitFor(() => load.v1 >= 50, { what: "fifty answers" });
    assert.equal(load.v2 + load.byFault, 0, "all from the stable version");
    const status = await shop.tulle("rollout", "status", "rollout/catalog");
    assert.equal(status.code, 1);
    assert.match(status.stdout, /catalog\.shop: canary of catalog, revision 1\nAborted: /);

    await fault(false);
    await shop.mustTulle("rollout", "start", "catalog");
    const watched = await shop.mustTulle("rollout", "watch", "catalog");
    assert.match(watched, /step 1 is done: 20 % to the canary\n[^]*step 3 is done: 50 %[^]*Completed: everything/);
    await shop.waitForSync();
    load.forget();
    await waitFor(() => load.v2 >= 50, { what: "fifty answers" });
    assert.equal(load.v1, 0, "all from the canary");

    assert.deepEqual(load.failed, [], "nothing failed but by the fault");
    const after = await Promise.all(touched.map(async (each) => [await readFile(each), (await stat(each)).mtimeMs]));
    assert.deepEqual(after, before);
    assert.doesNotMatch(
      await shop.mustTulle("get", "virtualservices,destinationrules", "-n", "shop", "-o", "yaml"),
      /weight/,
    );
  });

  test("does not start, or pauses, where it cannot go on: traffic stays where it was", async () => {
    const deadUrl = `http://127.0.0.1:${await freePort()}`;
    const query = `{ name: q, prometheus: { address: "${deadUrl}", query: up }, thresholdRange: { min: 1 }, interval: 1s }`;
    const rollout = (name: string, host: string): string => `---
apiVersion: rollouts.tulle.io/v1alpha1
kind: Rollout
metadata: { name: ${name}, namespace: shop }
spec:
  host: ${host}
  stable: { labels: { version: v1 } }
  canary: { labels: { version: v2 } }
  strategy: { canary: { steps: [{ setWeight: 50 }, { analysis: { metrics: [${query}] } }] } }
`;
    const operator = `---
apiVersion: v1
kind: ConfigMap
metadata: { name: tulle, namespace: tulle-system }
data: { mesh: 'rolloutPrometheusUrls: ["${deadUrl}"]' }
`;
    const steer = (action: "start" | "abort", name = "catalog"): Promise<RolloutView> =>
      shop.api().call(endpoints.steerRollout, { ...key, name, action });
    const file = path.join(shop.folder, "..", "rollouts-refused.yaml");
    await writeFile(
      file,
      `${rollout("lost", "catalogue")}${rollout("second", "catalog")}${rollout("catalog", "catalog")}${operator}`,
    );
    await shop.tulle("apply", "-f", file);
    for (const [name, reason] of [
      ["lost", /it cannot start: there is no Service catalogue\.shop/],
      ["second", /it cannot start: the Rollout shop\/catalog is of that host, too/],
    ] as const) {
      await assert.rejects(steer("start", name), reason);
    }
    await steer("start");
    const paused = await untilPhase("Paused");
    assert.match(paused.message, new RegExp(`^${RegExp.escape(deadUrl)} does not answer`));
    assert.deepEqual([paused.weight, paused.step], [50, 1]);
    await shop.waitForSync();
    await using load = new RolloutLoad(shop);
    await waitFor(() => load.v1 >= 20 && load.v2 >= 20, { what: "both versions" });
    assert.deepEqual(load.failed, []);
    assert.deepEqual([(await view()).phase, (await view()).weight], ["Paused", 50]);
    assert.equal((await steer("abort")).phase, "Aborted");
  });

  test("taken away with its Rollout", async () => {
    await shop.mustTulle("delete", "rollout", "catalog", "-n", "shop");
    await using load = new RolloutLoad(shop);
    await waitFor(() => load.v1 > 0 && load.v2 > 0, { what: "both versions again" });
    assert.equal((await shop.tulle("rollout", "status", "rollout/catalog")).code, 1);
  });
});
