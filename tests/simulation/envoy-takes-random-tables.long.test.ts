// The tables of random valid resources, as a real Envoy takes them, each a change from the one before.
import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { EnvoyUnderAds } from "../golden/envoy-under-ads.ts";
import { randomVirtualServices, tablesOf } from "./random-tables.ts";

test("a stock Envoy takes the tables of any valid resources", async (context) => {
  await using envoy = await EnvoyUnderAds.start();
  const seed = Date.now();
  context.diagnostic(`seed ${seed}`);
  for (const documents of fc.sample(randomVirtualServices, { numRuns: 1000, seed })) {
    const { proxies } = await tablesOf(documents);
    for (const resources of proxies) assert.deepEqual(await envoy.offer(resources), [], JSON.stringify(documents));
  }
});
