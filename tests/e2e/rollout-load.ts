// Requests to the catalog for as long as a test wants them, and what they got: from which version, and which failed by
// the fault that the sample makes, or by anything else.
import { setTimeout as pause } from "node:timers/promises";
import type { ShopInstance } from "./shop-instance.ts";

const workers = 4;
const betweenMs = 25;

export class RolloutLoad implements AsyncDisposable {
  readonly #shop: ShopInstance;
  readonly #done: Promise<unknown>;
  #isOver = false;
  #period = 0;
  isPaused = false;
  v1 = 0;
  v2 = 0;
  /** Answers of a catalog whose fault is on. */
  byFault = 0;
  readonly failed: string[] = [];

  constructor(shop: ShopInstance) {
    this.#shop = shop;
    this.#done = Promise.all(Array.from({ length: workers }, () => this.#run()));
  }

  get answered(): number {
    return this.v1 + this.v2 + this.byFault + this.failed.length;
  }

  /** From now on: what is under way counts no more, unless it fails. */
  forget(): void {
    this.#period += 1;
    this.v1 = this.v2 = this.byFault = 0;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isOver = true;
    await this.#done;
  }

  async #run(): Promise<void> {
    while (!this.#isOver) {
      await pause(betweenMs);
      if (this.isPaused) continue;
      const period = this.#period;
      try {
        const { status, body } = await this.#shop.get("/api/catalog/items/1");
        if (status === 200 && period !== this.#period) continue;
        if (status === 200 && body.includes('"imageUrl"')) this.v2 += 1;
        else if (status === 200) this.v1 += 1;
        else if (status === 500 && body.includes("blowup")) this.byFault += period === this.#period ? 1 : 0;
        else this.failed.push(`${status} ${body.slice(0, 200)}`);
      } catch (error) {
        this.failed.push(String(error));
      }
    }
  }
}
