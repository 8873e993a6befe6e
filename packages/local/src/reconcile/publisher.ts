// Writes the supervisor's Pods and EndpointSlices into the store: only what has changed, one request after another, again when
// one fails, and everything anew after the control plane was restarted, since the store lives in that process.
import { setTimeout as delay } from "node:timers/promises";
import { isDeepStrictEqual } from "node:util";
import { keyOf, keyText, type ApiClient, type MeshResource, type ResourceKey } from "@tulle/config";

const firstRetryDelayMs = 50;
const longestRetryDelayMs = 1000;

export class Publisher {
  readonly #api: ApiClient;
  readonly #onFailure: (error: unknown) => void;
  #wanted: ReadonlyMap<string, MeshResource> = new Map();
  /** What the store holds as far as this process knows; undefined: there is something, and it is not known what. */
  #written = new Map<string, { readonly key: ResourceKey; readonly resource: MeshResource | undefined }>();
  #running: Promise<void> | undefined;
  #failuresInARow = 0;
  #closed = false;

  constructor(api: ApiClient, onFailure: (error: unknown) => void) {
    this.#api = api;
    this.#onFailure = onFailure;
  }

  /** Makes the store hold these resources and none of those written before. Returns at once. */
  publish(resources: readonly MeshResource[]): void {
    this.#wanted = new Map(resources.map((resource) => [keyText(keyOf(resource)), resource]));
    this.#run();
  }

  /** Whether everything wanted so far is written. */
  get isSettled(): boolean {
    return this.#running === undefined;
  }

  /** The store has lost everything. */
  reset(): void {
    this.#written = new Map();
    this.#run();
  }

  /** The store holds something of an earlier run: it is removed unless it is wanted. */
  adopt(resources: readonly MeshResource[]): void {
    for (const resource of resources) {
      const key = keyOf(resource);
      this.#written.set(keyText(key), { key, resource: undefined });
    }
    this.#run();
  }

  /** Somebody else has written to it. */
  rewrite(key: ResourceKey): void {
    this.#written.set(keyText(key), { key, resource: undefined });
    this.#run();
  }

  close(): void {
    this.#closed = true;
  }

  #run(): void {
    this.#running ??= this.#writeAll().finally(() => {
      this.#running = undefined;
      // Something may have become wanted between the last look and here.
      if (!this.#closed && this.#next() !== undefined) this.#run();
    });
  }

  async #writeAll(): Promise<void> {
    // One tick, so that changes of the same moment are one write.
    await Promise.resolve();
    for (let next = this.#next(); next !== undefined && !this.#closed; next = this.#next()) {
      const written = this.#written;
      try {
        if (next.resource === undefined) {
          await this.#api.delete(next.key);
          written.delete(keyText(next.key));
        } else {
          const answer = await this.#api.apply(next.resource);
          if (answer.outcome === "rejected") this.#onFailure(new Error(`${keyText(next.key)}: ${answer.message}`));
          written.set(keyText(next.key), next);
        }
        this.#failuresInARow = 0;
      } catch (error) {
        if (this.#closed) return;
        this.#failuresInARow += 1;
        // A control plane that is down for a while is told of once.
        if (this.#failuresInARow === 1) this.#onFailure(error);
        await delay(Math.min(longestRetryDelayMs, firstRetryDelayMs * 2 ** Math.min(this.#failuresInARow - 1, 10)));
      }
    }
  }

  /** The next thing to write: withdrawals and changes in the order wanted, then removals. */
  #next(): { readonly key: ResourceKey; readonly resource: MeshResource | undefined } | undefined {
    for (const [key, resource] of this.#wanted) {
      if (!isDeepStrictEqual(this.#written.get(key)?.resource, resource)) return { key: keyOf(resource), resource };
    }
    for (const [key, { key: resourceKey }] of this.#written) {
      if (!this.#wanted.has(key)) return { key: resourceKey, resource: undefined };
    }
    return undefined;
  }
}
