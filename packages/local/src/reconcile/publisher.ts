// Makes the store hold the supervisor's Pods and EndpointSlices, and none of its kind besides: what differs is written,
// one request after another, again when one fails. What counts is what the store is heard to hold, so that whatever
// else writes there, deletes there or loses what is there is made good.
import { setTimeout as delay } from "node:timers/promises";
import { isDeepStrictEqual } from "node:util";
import { ApiError, keyOf, keyText, type ApiClient, type MeshResource, type ResourceKey } from "@tulle/config";

const firstRetryDelayMs = 50;
const longestRetryDelayMs = 1000;

/** The store as a watch has told it. */
export interface HeardStore {
  /** All changes up to this version are in it; undefined: nothing has been heard yet. */
  readonly resourceVersion: number | undefined;
  /** What a supervisor has written, this one or an earlier one. */
  readonly ours: readonly MeshResource[];
  get(key: ResourceKey): MeshResource | undefined;
}

interface Written {
  readonly key: ResourceKey;
  readonly resource: MeshResource;
  /** That the store gave to it; of what it refused none that it will ever have. */
  readonly version: number;
}

interface Write {
  readonly key: ResourceKey;
  /** Undefined: it is to be removed. */
  readonly resource: MeshResource | undefined;
  readonly heardVersion?: string | undefined;
}

export class Publisher {
  readonly #api: ApiClient;
  readonly #heard: () => HeardStore;
  readonly #onFailure: (error: unknown) => void;
  /** Undefined before the first time: what an earlier run has left stays until it is known what is wanted. */
  #wanted: ReadonlyMap<string, MeshResource> | undefined;
  readonly #written = new Map<string, Written>();
  /** Version of what was removed, until the watch has told of that. */
  readonly #removed = new Map<string, string | undefined>();
  #running: Promise<void> | undefined;
  #failuresInARow = 0;
  #closed = false;

  constructor(api: ApiClient, heard: () => HeardStore, onFailure: (error: unknown) => void) {
    this.#api = api;
    this.#heard = heard;
    this.#onFailure = onFailure;
  }

  /** Makes the store hold these resources and no others of a supervisor. Returns at once. */
  publish(resources: readonly MeshResource[]): void {
    this.#wanted = new Map(resources.map((resource) => [keyText(keyOf(resource)), resource]));
    const heard = new Set(this.#heard().ours.map((resource) => keyText(keyOf(resource))));
    for (const key of this.#removed.keys()) if (!heard.has(key)) this.#removed.delete(key);
    this.#run();
  }

  /** Whether everything wanted so far is written. */
  get isSettled(): boolean {
    return this.#running === undefined;
  }

  /** The store may have lost everything; the watch will tell, later. */
  reset(): void {
    this.#written.clear();
    this.#removed.clear();
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
      try {
        await this.#write(next);
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

  async #write({ key, resource, heardVersion }: Write): Promise<void> {
    const text = keyText(key);
    if (resource === undefined) {
      try {
        await this.#api.delete(key, { atOnce: true });
      } catch (error) {
        // A manifest says so: it is the user's.
        if (!(error instanceof ApiError) || error.status !== 409) throw error;
        this.#onFailure(error);
      }
      this.#written.delete(text);
      this.#removed.set(text, heardVersion);
      return;
    }
    const answer = await this.#api.apply(resource);
    const isRefused = answer.outcome === "rejected";
    if (isRefused) this.#onFailure(new Error(`${text}: ${answer.message}`));
    const version = isRefused ? Number.POSITIVE_INFINITY : versionOf(answer.resource);
    this.#written.set(text, { key, resource, version });
  }

  /** The next thing to write: withdrawals and changes in the order wanted, then removals. */
  #next(): Write | undefined {
    if (this.#wanted === undefined) return undefined;
    const heard = this.#heard();
    for (const [text, resource] of this.#wanted) {
      const written = this.#written.get(text);
      const isAsWanted = written !== undefined && isDeepStrictEqual(written.resource, resource);
      if (!isAsWanted || isOverwritten(written, heard)) return { key: keyOf(resource), resource };
    }
    for (const [text, { key }] of this.#written) {
      if (!this.#wanted.has(text)) return { key, resource: undefined, heardVersion: heardVersionOf(key, heard) };
    }
    for (const resource of heard.ours) {
      const text = keyText(keyOf(resource));
      const heardVersion = resource.metadata.resourceVersion;
      const isRemoved = this.#removed.has(text) && this.#removed.get(text) === heardVersion;
      if (!this.#wanted.has(text) && !isRemoved) return { key: keyOf(resource), resource: undefined, heardVersion };
    }
    return undefined;
  }
}

/** Somebody else has written or deleted it since. What the watch has not told yet is no sign of either. */
function isOverwritten({ key, version }: Written, heard: HeardStore): boolean {
  if (heard.resourceVersion === undefined) return false;
  const present = heard.get(key);
  return present === undefined ? heard.resourceVersion >= version : versionOf(present) > version;
}

function heardVersionOf(key: ResourceKey, heard: HeardStore): string | undefined {
  return heard.get(key)?.metadata.resourceVersion;
}

function versionOf({ metadata }: MeshResource): number {
  return Number(metadata.resourceVersion ?? 0);
}
