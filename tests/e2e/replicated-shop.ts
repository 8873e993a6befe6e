// The shop with two of everything, for tests that change and break it under load: what runs it, and what is written to
// it.
import assert from "node:assert/strict";
import { readFile, readdir, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import { ApiClient, type Kind, type MeshResource } from "@tulle/config";
import { envoyPath } from "../tools/envoy-path.ts";
import { waitFor } from "../tools/processes.ts";
import type { MeshVariant } from "./mesh-variant.ts";
import { requireNamespaces } from "./namespaces-stage.ts";
import { ShopInstance } from "./shop-instance.ts";

export interface DeploymentName {
  readonly name: string;
  readonly namespace: string;
}

export const workloads: readonly DeploymentName[] = ["webapp", "catalog-v1", "catalog-v2", "productpage"].map(
  (name) => ({
    name,
    namespace: "shop",
  }),
);
export const gateway: DeploymentName = { name: "tulle-ingressgateway", namespace: "tulle-system" };
export const deployments: readonly DeploymentName[] = [...workloads, gateway];
export const replicas = 2;
export const podCount = deployments.length * replicas;

/**
 * Tulle's proxy goes as soon as it has answered what it was asked, which takes seconds while the machine has more to do
 * than it can; with a stock Envoy the whole of it is waited for. Streams that stay open are cut by neither a changed
 * listener nor a changed policy while it drains.
 */
const drainSetting = "{ terminationDrainDuration: 6s, drainDuration: 600s }";

/** Two replicas of each. */
async function replicate(folder: string): Promise<void> {
  // Sign-in needs what a shop of the tests does not run.
  await rm(path.join(folder, "account.yaml"), { force: true });
  for (const file of (await readdir(folder)).filter((name) => name.endsWith(".yaml"))) {
    const text = await readFile(path.join(folder, file), "utf8");
    const changed = text
      .replaceAll("replicas: 1", `replicas: ${replicas}`)
      .replaceAll("\n      annotations:\n", `\n      annotations:\n        proxy.istio.io/config: "${drainSetting}"\n`);
    await writeFile(path.join(folder, file), changed);
  }
}

export async function startReplicatedShop(
  variant: MeshVariant,
  prepare?: (folder: string) => Promise<void>,
): Promise<ShopInstance> {
  if (variant.mode === "namespaces") await requireNamespaces();
  return ShopInstance.start({
    variant,
    ...(variant.proxy === "envoy" ? { env: { TULLE_ENVOY: await envoyPath() } } : {}),
    prepare: async (folder) => {
      await replicate(folder);
      await prepare?.(folder);
    },
  });
}

/** Writes a resource as `tulle apply` does, and goes on trying while the control plane is away. */
export class ShopWriter {
  readonly #client: ApiClient;

  private constructor(client: ApiClient) {
    this.#client = client;
  }

  static of(shop: ShopInstance): ShopWriter {
    return new ShopWriter(shop.api());
  }

  apply(resource: unknown): Promise<void> {
    return this.#untilDone(async () => {
      const answer = await this.#client.apply(resource as MeshResource);
      assert.notEqual(answer.outcome, "rejected", JSON.stringify(answer));
    });
  }

  delete(kind: Kind, namespace: string, name: string): Promise<void> {
    return this.#untilDone(async () => void (await this.#client.delete({ kind, namespace, name })));
  }

  async #untilDone(write: () => Promise<void>): Promise<void> {
    await waitFor(
      async () => {
        await write();
        return true;
      },
      { what: "the control plane to take a change", intervalMs: 50 },
    );
  }
}

/** Waits until as many pods as wanted are ready, none more is there, and every proxy has what it should have. */
export async function waitForCalm(shop: ShopInstance): Promise<void> {
  await waitFor(
    async () => {
      const pods = await shop.pods();
      return (
        pods.length === podCount && pods.every(({ ready }) => ready) && (await shop.syncRows()).length === podCount
      );
    },
    { what: "all pods", timeoutMs: 120_000, intervalMs: 100, details: () => shop.up.output().slice(-3000) },
  );
  await shop.waitForSync();
}

export async function rollOut(
  shop: ShopInstance,
  { name, namespace }: DeploymentName,
  container?: string,
): Promise<void> {
  const only = container === undefined ? [] : ["-c", container];
  await shop.mustTulle("rollout", "restart", `deployment/${name}`, "-n", namespace, ...only);
  await shop.mustTulle("rollout", "status", `deployment/${name}`, "-n", namespace);
}
