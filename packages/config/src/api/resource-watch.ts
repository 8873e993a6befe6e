/**
 * Follows resources of the control plane over its watch endpoint and keeps a copy of them. It hides reconnections and
 * lost history: whatever happens to the connection, the listener sees a sequence of changes from the state it knows.
 *
 * States: `listing` (reads all objects, tells the differences) → `watching` (reads events) → on a broken connection
 * `waiting` (jittered back-off), then `watching` from the last version, or `listing` when the server no longer has it →
 * `closed`.
 */
import { setTimeout as delay } from "node:timers/promises";
import { bookmarkIntervalMs, endpoints } from "./api.ts";
import type { ListResponse, WatchEvent } from "./answers.ts";
import { pathOf } from "./endpoint.ts";
import type { ApiClient } from "./api-client.ts";
import type { Kind } from "../kinds/kinds.ts";
import { keyOf, keyText, sameContent } from "../kinds/resource.ts";
import type { MeshResource, ResourceOf } from "../kinds/resource.ts";
import type { StoreChange, StoreListener } from "../store/store.ts";

/** A connection without even a bookmark for this long is dead. */
export const watchSilenceMs = 3 * bookmarkIntervalMs;
/** Longest single event; an object itself is at most 3 MiB. */
export const maxEventBytes = 8 * 1024 * 1024;

export interface ResourceWatchOptions {
  /** The first batch holds everything that is there as `added`; it is left out when there is nothing. */
  readonly onChanges: StoreListener;
  /** Told of each failure that is followed by another attempt. */
  readonly onFailure?: (error: unknown) => void;
  readonly minBackoffMs?: number;
  readonly maxBackoffMs?: number;
  /** 0 ≤ value < 1; `Math.random` unless a test says otherwise. */
  readonly random?: () => number;
}

export class ResourceWatch {
  /** Resolves once everything that was there has been told; rejects when the watch is closed before. */
  readonly ready: Promise<void>;
  /** Resolves when the watch has ended after `close`. */
  readonly closed: Promise<void>;
  readonly #client: ApiClient;
  readonly #kinds: readonly Kind[];
  readonly #options: ResourceWatchOptions;
  readonly #abort = new AbortController();
  readonly #resources = new Map<string, MeshResource>();
  readonly #becomeReady: () => void;
  #resourceVersion: number | undefined;
  #failures = 0;

  constructor(client: ApiClient, kinds: readonly Kind[], options: ResourceWatchOptions) {
    this.#client = client;
    this.#kinds = kinds;
    this.#options = options;
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.ready = promise;
    promise.catch(() => undefined); // nobody has to wait for it
    this.#becomeReady = resolve;
    this.#abort.signal.addEventListener("abort", () => reject(new Error("the watch was closed")));
    this.closed = this.#run();
  }

  /** Everything up to this version of the store has been heard; undefined before the first list. */
  get resourceVersion(): number | undefined {
    return this.#resourceVersion;
  }

  get<K extends Kind>(kind: K, namespace: string, name: string): ResourceOf<K> | undefined {
    return this.#resources.get(keyText({ kind, namespace, name })) as ResourceOf<K> | undefined;
  }

  list<K extends Kind>(kind: K, namespace?: string): readonly ResourceOf<K>[] {
    const found = [...this.#resources.values()].filter(
      (resource) => resource.kind === kind && (namespace === undefined || resource.metadata.namespace === namespace),
    );
    return found as readonly MeshResource[] as readonly ResourceOf<K>[];
  }

  close(): void {
    this.#abort.abort();
  }

  async #run(): Promise<void> {
    const { signal } = this.#abort;
    while (!signal.aborted) {
      try {
        if (this.#resourceVersion === undefined) await this.#list();
        await this.#follow();
      } catch (error) {
        if (signal.aborted) return;
        this.#failures += 1;
        this.#options.onFailure?.(error);
        await delay(this.#backoffMs(), undefined, { signal }).catch(() => undefined);
      }
    }
  }

  #backoffMs(): number {
    const { minBackoffMs = 100, maxBackoffMs = 5000, random = Math.random } = this.#options;
    const ceilingMs = Math.min(maxBackoffMs, minBackoffMs * 2 ** Math.min(this.#failures - 1, 16));
    return ceilingMs * (0.5 + random() / 2);
  }

  /** Reads all objects and tells how they differ from those known. */
  async #list(): Promise<void> {
    const lists = await Promise.all(this.#kinds.map((kind) => this.#listKind(kind)));
    // Watching from the oldest of the lists repeats a few changes rather than missing one.
    const resourceVersion = Math.min(...lists.map((list) => list.resourceVersion));
    const present = new Map<string, MeshResource>();
    for (const list of lists) for (const item of list.items) present.set(keyText(keyOf(item)), item);
    const changes: StoreChange[] = [];
    for (const [key, previous] of this.#resources) {
      if (!present.has(key)) changes.push({ type: "deleted", resource: previous, previous, resourceVersion });
    }
    for (const [key, resource] of present) {
      const change = changeFrom(this.#resources.get(key), resource, resourceVersion);
      if (change !== undefined) changes.push(change);
      // After a restart of the control plane an object may have a new version and nothing else: nobody is told.
      else this.#resources.set(key, resource);
    }
    this.#tell(changes);
    this.#resourceVersion = resourceVersion;
    this.#becomeReady();
  }

  async #listKind(kind: Kind): Promise<ListResponse> {
    const { signal } = this.#abort;
    const response = await this.#client.open("GET", pathOf(endpoints.listResources, { kind }), { signal });
    if (response.statusCode !== 200) {
      response.destroy();
      throw new Error(`listing ${kind}: the control plane answered ${response.statusCode}`);
    }
    const chunks: Buffer[] = [];
    for await (const chunk of response as AsyncIterable<Buffer>) chunks.push(chunk);
    return JSON.parse(Buffer.concat(chunks).toString("utf8")) as ListResponse;
  }

  /** Reads events until the connection ends; throws when it breaks. */
  async #follow(): Promise<void> {
    const wanted = { kinds: this.#kinds.join(","), resourceVersion: this.#resourceVersion };
    const path = pathOf(endpoints.watch, wanted);
    const response = await this.#client.open("GET", path, { signal: this.#abort.signal });
    if (response.statusCode === 410) {
      response.destroy();
      this.#resourceVersion = undefined;
      return;
    }
    if (response.statusCode !== 200) {
      response.destroy();
      throw new Error(`watching: the control plane answered ${response.statusCode}`);
    }
    response.socket.setTimeout(watchSilenceMs, () => response.destroy(new Error("the watch fell silent")));
    let rest = "";
    response.setEncoding("utf8");
    for await (const chunk of response as AsyncIterable<string>) {
      this.#failures = 0;
      const lines = (rest + chunk).split("\n");
      rest = lines.pop() ?? "";
      if (rest.length > maxEventBytes) throw new Error(`an event is longer than ${maxEventBytes} bytes`);
      this.#takeEvents(lines.filter((line) => line !== "").map((line) => JSON.parse(line) as WatchEvent));
    }
    throw new Error("the control plane ended the watch");
  }

  #takeEvents(events: readonly WatchEvent[]): void {
    const changes: StoreChange[] = [];
    const known = new Map<string, MeshResource | undefined>();
    for (const event of events) {
      if (event.type === "bookmark") continue;
      const { resource, resourceVersion } = event;
      const key = keyText(keyOf(resource));
      const previous = known.has(key) ? known.get(key) : this.#resources.get(key);
      const change =
        event.type !== "deleted"
          ? changeFrom(previous, resource, resourceVersion)
          : previous === undefined
            ? undefined
            : ({ type: "deleted", resource, previous, resourceVersion } satisfies StoreChange);
      known.set(key, event.type === "deleted" ? undefined : resource);
      if (change !== undefined) changes.push(change);
    }
    this.#tell(changes);
    const last = events.at(-1);
    if (last !== undefined) this.#resourceVersion = last.resourceVersion;
  }

  #tell(changes: readonly StoreChange[]): void {
    for (const { type, resource } of changes) {
      const key = keyText(keyOf(resource));
      if (type === "deleted") this.#resources.delete(key);
      else this.#resources.set(key, resource);
    }
    if (changes.length > 0) this.#options.onChanges(changes);
  }
}

function changeFrom(
  previous: MeshResource | undefined,
  resource: MeshResource,
  resourceVersion: number,
): StoreChange | undefined {
  if (previous === undefined) return { type: "added", resource, resourceVersion };
  return sameContent(previous, resource) ? undefined : { type: "modified", resource, previous, resourceVersion };
}
