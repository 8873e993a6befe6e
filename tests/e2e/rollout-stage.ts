// A shop with requests to its catalog, whose second version a Rollout brings in, and what ends in between.
import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import path from "node:path";
import { endpoints, type RolloutAction, type RolloutView } from "@tulle/config/api";
import { waitFor } from "../tools/processes.ts";
import { RolloutLoad } from "./rollout-load.ts";
import { httpRequest, ShopInstance, type ShopOptions } from "./shop-instance.ts";

export const rolloutKey = { namespace: "shop", name: "catalog" };

export class RolloutStage implements AsyncDisposable {
  readonly shop: ShopInstance;
  readonly load: RolloutLoad;

  private constructor(shop: ShopInstance) {
    this.shop = shop;
    this.load = new RolloutLoad(shop);
  }

  static async start(options: ShopOptions = {}): Promise<RolloutStage> {
    return new RolloutStage(await ShopInstance.start({ without: ["productpage.yaml"], ...options }));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.load[Symbol.asyncDispose]();
    await this.shop[Symbol.asyncDispose]();
  }

  /** A new one in the place of the last. */
  async begin(text: string): Promise<void> {
    const file = path.join(this.shop.folder, "..", "rollout.yaml");
    await writeFile(file, text);
    await this.shop.tulle("delete", "rollout", "catalog", "-n", "shop");
    await this.shop.mustTulle("apply", "-f", file);
    this.load.failed.length = 0;
    await this.act("start");
  }

  act(action: RolloutAction): Promise<RolloutView> {
    return this.shop.api().call(endpoints.steerRollout, { ...rolloutKey, action });
  }

  view(): Promise<RolloutView> {
    return this.shop.api().call(endpoints.rollout, rolloutKey);
  }

  /** The control plane may be away. */
  until(what: string, isSo: (view: RolloutView) => boolean): Promise<RolloutView> {
    return waitFor(
      async () => {
        const view = await this.view().catch(() => undefined);
        return view !== undefined && isSo(view) && view;
      },
      { what, intervalMs: 20, details: () => this.shop.up.output().slice(-2000) },
    );
  }

  async fault(active: boolean, version: "v1" | "v2" = "v2"): Promise<void> {
    const { app } = await this.shop.pod(`catalog-${version}`);
    const body = JSON.stringify({ active, type: "500", percentage: 100 });
    await httpRequest(`http://${app!.address}:${app!.port}/blowup`, { method: "POST", body });
  }

  async kill(process_: string): Promise<void> {
    const killed = (await this.shop.processes()).get(process_);
    assert.ok(killed, process_);
    process.kill(killed, "SIGKILL");
    await waitFor(
      async () => {
        const now = (await this.shop.processes()).get(process_);
        return now !== undefined && now !== killed;
      },
      { what: `${process_} to be started again` },
    );
  }

  async killProxyOf(prefix: string): Promise<void> {
    await this.kill(`${(await this.shop.pod(prefix)).name} proxy`);
  }

  /** Every pod is there, and its proxy has what is newest. */
  async isWhole(): Promise<void> {
    await waitFor(
      async () => {
        const pods = await this.shop.pods();
        return pods.every(({ ready }) => ready) && (await this.shop.syncRows()).length === pods.length;
      },
      { what: "all pods and their proxies", details: () => this.shop.up.output().slice(-2000) },
    );
    await this.shop.waitForSync();
  }

  /** So many answers one after the other, all of one version. An Envoy acknowledges before its workers follow. */
  async onlyFrom(version: "v1" | "v2"): Promise<void> {
    await this.isWhole();
    const { load } = this;
    load.forget();
    await waitFor(
      () => {
        const others = load.byFault + (version === "v1" ? load.v2 : load.v1);
        if (others > 0) load.forget();
        return load[version] >= 50;
      },
      { what: `answers of ${version} alone`, details: () => `v1 ${load.v1}, v2 ${load.v2}, faults ${load.byFault}` },
    );
  }
}
