// One shop for all test files that only look into a running one or route through it: whatever asks first in a process
// starts it, and it ends with the tests of the process. tools/test-batches.ts puts these files into one process; alone,
// each of them has a shop of its own. A suite that damages its shop, or is about its start or end, starts its own.
import assert from "node:assert/strict";
import { after, before } from "node:test";
import { keyOf, keyText, kinds, sameContent, type Kind, type MeshResource } from "@tulle/config";
import { envoyPath } from "../tools/envoy-path.ts";
import { waitFor } from "../tools/processes.ts";
import { type MeshVariant, variantName } from "./mesh-variant.ts";
import { requireNamespaces } from "./namespaces-stage.ts";
import { ShopInstance, type ShopOptions } from "./shop-instance.ts";

/** By what is beside the apps and at the gateway; a whole one has the authorization server and all that needs it. */
const shops = {
  "Tulle's proxy": {},
  "whole, Tulle's proxy": { isWhole: true },
  "whole, a stock Envoy": { isWhole: true, args: ["--proxy", "envoy"] },
} as const satisfies Readonly<Record<string, ShopOptions>>;

export type RunningShopName = keyof typeof shops;

/** They come and go by themselves. */
const unconfigured: readonly Kind[] = ["Pod", "EndpointSlice"];

const running = new Map<string, Promise<ShopInstance>>();

function runningShop(which: RunningShopName | MeshVariant): Promise<ShopInstance> {
  const [name, options] = typeof which === "string" ? [which, shops[which]] : [variantName(which), { variant: which }];
  let starting = running.get(name);
  if (starting === undefined) {
    starting = startShop(options);
    running.set(name, starting);
  }
  return starting;
}

async function startShop(options: ShopOptions): Promise<ShopInstance> {
  if (options.variant?.mode === "namespaces") await requireNamespaces();
  return ShopInstance.start({ ...options, env: { TULLE_ENVOY: await envoyPath() } });
}

// Of the whole process: which suite is the last one is not known where a pattern chooses among the tests.
after(async () => {
  const started = await Promise.allSettled(running.values());
  for (const shop of started) if (shop.status === "fulfilled") await shop.value[Symbol.asyncDispose]();
});

/**
 * To be called in a `describe`: gives its tests the running shop of that name, and afterwards takes back what they
 * applied, so that the next suite finds it as this one did.
 */
export function useRunningShop(which: RunningShopName | MeshVariant, take: (shop: ShopInstance) => unknown): void {
  let found: Found | undefined;
  before(async () => {
    const shop = await runningShop(which);
    found = { shop, resources: await configured(shop), pods: (await shop.pods()).length };
    await take(shop);
  });
  after(async () => {
    if (found !== undefined) await putBack(found);
  });
}

/** `useRunningShop` of a shop that the suite need not know. */
export type UseShop = (take: (shop: ShopInstance) => unknown) => void;

/** How a suite found a shop. */
interface Found {
  readonly shop: ShopInstance;
  readonly resources: ReadonlyMap<string, MeshResource>;
  readonly pods: number;
}

async function configured(shop: ShopInstance): Promise<ReadonlyMap<string, MeshResource>> {
  const api = shop.api();
  const lists = await Promise.all(kinds.filter((kind) => !unconfigured.includes(kind)).map((kind) => api.list(kind)));
  return new Map(lists.flatMap(({ items }) => items.map((item: MeshResource) => [keyText(keyOf(item)), item])));
}

async function putBack({ shop, resources, pods }: Found): Promise<void> {
  const api = shop.api();
  for (const [key, resource] of await configured(shop)) if (!resources.has(key)) await api.delete(keyOf(resource));
  const left = await configured(shop);
  for (const [key, resource] of resources) {
    const now = left.get(key);
    if (now !== undefined && sameContent(now, resource)) continue;
    const answer = await api.apply(resource);
    assert.notEqual(answer.outcome, "rejected", key);
  }
  await waitFor(
    async () => {
      const rows = await shop.pods();
      return rows.length === pods && rows.every(({ ready }) => ready) && (await shop.syncRows()).length === pods;
    },
    { what: "the shop to be as it was found", details: () => shop.up.output().slice(-3000) },
  );
  await shop.waitForSync();
}
