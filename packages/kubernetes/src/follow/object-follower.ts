// Follows the objects of one kind: all there are, then each change, again from the start where the server has forgotten
// the version that we stand at. Nothing here knows what the objects are for.
import { backOffMs, type Clock } from "@tulle/timing";
import { type Logger, Trouble } from "@tulle/telemetry";
import type { KubernetesClient } from "../client/kubernetes-client.ts";
import { KubernetesError, type StatusBody } from "../client/kubernetes-error.ts";
import { jsonLines } from "./json-lines.ts";

/** An object as the API server gives it. */
export interface KubernetesObject {
  readonly apiVersion?: string;
  readonly kind?: string;
  readonly metadata: {
    readonly name: string;
    readonly namespace?: string;
    readonly uid?: string;
    readonly resourceVersion?: string;
    readonly generation?: number;
    readonly creationTimestamp?: string;
    readonly labels?: Readonly<Record<string, string>>;
    readonly annotations?: Readonly<Record<string, string>>;
  };
  readonly status?: unknown;
}

export interface ObjectListener {
  /** All that there is: at the start, and again after a gap in which anything may have changed. */
  onList(objects: readonly KubernetesObject[]): void;
  onChange(type: "ADDED" | "MODIFIED" | "DELETED", object: KubernetesObject): void;
}

export interface FollowOptions extends ObjectListener {
  readonly client: KubernetesClient;
  /** Of the collection: `/api/v1/services`. */
  readonly path: string;
  /** What an item of a list does not say by itself. */
  readonly apiVersion: string;
  readonly kind: string;
  /** The same in other versions, which are asked for in turn where this one is not served. */
  readonly otherVersions?: readonly Pick<FollowOptions, "path" | "apiVersion">[];
  /** Selectors, for instance. */
  readonly query?: Readonly<Record<string, string>>;
  /** JSON unless told: a watch of metadata alone has a type of its own. */
  readonly accept?: string;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Logger;
}

/** As `FollowOptions.accept`: names, versions and labels, without what is in the objects. */
export const metadataOnly = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";

/** Objects of a page of a list: as kubectl asks. */
const pageObjects = 500;
/** Between tries: as client-go has it. */
const retry = { baseMs: 800, maxMs: 30_000 };
/** A kind that is not served may be defined later; nobody tells. Most are, as what they are for is installed. */
const unserved = { baseMs: 2_000, maxMs: 30_000 };
/**
 * The server sends a bookmark each minute where it can. A stream that says nothing for longer may be cut without a word
 * on the way; a new one from the same version costs little and loses nothing.
 */
const silenceMs = 150_000;
const shortestWatchMs = 1_000;
/** Of a watch in seconds, at the least; up to twice that, so that not all end together. */
const watchSeconds = 300;

interface WatchEvent {
  readonly type?: string;
  readonly object?: KubernetesObject | StatusBody;
}

interface ObjectList {
  readonly metadata?: { readonly resourceVersion?: string; readonly continue?: string };
  readonly items?: readonly KubernetesObject[] | null;
}

export class ObjectFollower {
  readonly #options: FollowOptions;
  readonly #trouble: Trouble;
  readonly #ending = new AbortController();
  readonly #listed = Promise.withResolvers<void>();
  #version: string | undefined;
  /** Of this and the other versions, which one is asked for. */
  #asked = 0;
  /** A server before Kubernetes 1.32 answers so. */
  #takesInitialEvents = true;
  #tries = 0;
  #hasListed = false;
  /** Answers in a row that there is no such kind. */
  #timesMissing = 0;
  #running: Promise<void> | undefined;

  constructor(options: FollowOptions) {
    this.#options = options;
    this.#trouble = new Trouble(options.log);
  }

  /** Resolves once all there is was told; tries until then. Rejects when closed before. */
  start(): Promise<void> {
    this.#running ??= this.#run();
    return this.#listed.promise;
  }

  async close(): Promise<void> {
    this.#ending.abort();
    this.#listed.promise.catch(() => undefined);
    this.#listed.reject(new Error("closed before everything was read"));
    await this.#running;
  }

  get #served(): Pick<FollowOptions, "path" | "apiVersion"> {
    return this.#asked === 0 ? this.#options : this.#options.otherVersions![this.#asked - 1]!;
  }

  async #run(): Promise<void> {
    while (!this.#ending.signal.aborted) {
      try {
        await this.#follow();
      } catch (error) {
        if (this.#ending.signal.aborted) return;
        await this.#wait(this.#delayAfter(error));
      }
    }
  }

  async #follow(): Promise<void> {
    if (this.#version === undefined) {
      if (this.#takesInitialEvents && (await this.#listByWatching())) return;
      await this.#listByPages();
    }
    await this.#watch({ resourceVersion: this.#version }, undefined);
  }

  #delayAfter(error: unknown): number {
    const { random } = this.#options;
    const { path } = this.#served;
    const refused = error instanceof KubernetesError ? error : undefined;
    if (refused?.isExpired === true) {
      this.#version = undefined;
      // A server that has restarted forgets everybody's version at once: they do not all list in the same moment.
      return Math.round(random() * retry.baseMs);
    }
    if (refused?.code === 404) {
      this.#version = undefined;
      const { otherVersions = [] } = this.#options;
      this.#asked = (this.#asked + 1) % (otherVersions.length + 1);
      if (this.#asked > 0) return 0;
      this.#timesMissing += 1;
      // A server that has just started may not know its kinds yet; those who are there already stay for one more look.
      if (!this.#hasListed || this.#timesMissing > 1) this.#tellAll([]);
      return backOffMs(unserved, this.#timesMissing - 1, random);
    }
    const message = error instanceof Error ? error.message : String(error);
    const next = refused?.code === 403 ? "; grant list and watch of it to this account" : "";
    this.#trouble.begin(`${path} cannot be followed, and is tried again: ${message}${next}`);
    const delayMs = backOffMs(retry, this.#tries, random);
    this.#tries += 1;
    return Math.max(delayMs, refused?.retryAfterMs ?? 0);
  }

  /** A list as the first events of a watch, one object at a time. False where the server knows no such thing. */
  async #listByWatching(): Promise<boolean> {
    const first: KubernetesObject[] = [];
    try {
      await this.#watch({ sendInitialEvents: true, resourceVersionMatch: "NotOlderThan" }, first);
      return true;
    } catch (error) {
      const isUnknown = error instanceof KubernetesError && (error.code === 400 || error.code === 422);
      if (!isUnknown) throw error;
      this.#takesInitialEvents = false;
      return false;
    }
  }

  async #listByPages(): Promise<void> {
    const { client, query, accept } = this.#options;
    const { path } = this.#served;
    const objects: KubernetesObject[] = [];
    let next: string | undefined;
    let version: string | undefined;
    do {
      const page: ObjectList = await client.request<ObjectList>({
        path,
        query: { ...query, limit: pageObjects, continue: next },
        ...(accept === undefined
          ? {}
          : { accept: accept.replace("PartialObjectMetadata;", "PartialObjectMetadataList;") }),
        signal: this.#ending.signal,
      });
      objects.push(...(page.items ?? []));
      next = page.metadata?.continue === "" ? undefined : page.metadata?.continue;
      version = page.metadata?.resourceVersion;
    } while (next !== undefined);
    // Not before: a watch from there would tell nothing of the pages that could not be read.
    this.#version = version;
    this.#tellAll(objects);
    this.#isWell();
  }

  /** `first` collects what comes before the list is whole; undefined where it is. */
  async #watch(
    from: Readonly<Record<string, string | boolean | undefined>>,
    first: KubernetesObject[] | undefined,
  ): Promise<void> {
    const { client, query, accept, random, clock } = this.#options;
    const { path } = this.#served;
    const stop = new AbortController();
    const signal = AbortSignal.any([stop.signal, this.#ending.signal]);
    const timeoutSeconds = watchSeconds + Math.floor(random() * watchSeconds);
    const stream = await client.stream({
      path,
      query: { ...query, watch: true, allowWatchBookmarks: true, timeoutSeconds, ...from },
      ...(accept === undefined ? {} : { accept }),
      signal,
    });
    const begunMs = clock.nowMs();
    let initial = first;
    let lines = 0;
    let cancel = clock.after(silenceMs, () => stop.abort());
    try {
      for await (const line of jsonLines(stream)) {
        cancel();
        cancel = clock.after(silenceMs, () => stop.abort());
        initial = this.#take(line as WatchEvent, initial);
        lines += 1;
      }
    } catch (error) {
      if (!stop.signal.aborted) throw error;
    } finally {
      cancel();
      stream.destroy();
    }
    if (initial !== undefined) throw new Error("the list ended before it was whole");
    // A watch that ends by itself is the server's way, and the next one goes on where it stood; not so one that ends at
    // once, which would be asked for again and again.
    if (lines === 0 && clock.nowMs() - begunMs < shortestWatchMs) throw new Error("the watch ended as it had begun");
  }

  /** Returns what is still collected of a list that is not whole. */
  #take({ type, object }: WatchEvent, initial: KubernetesObject[] | undefined): KubernetesObject[] | undefined {
    if (type === "ERROR") {
      const { code = 0, reason = "", message = "the watch ended by an error" } = (object ?? {}) as StatusBody;
      throw new KubernetesError(code, reason, message);
    }
    const given = object as KubernetesObject | undefined;
    const version = given?.metadata?.resourceVersion;
    if (given === undefined || version === undefined) throw new Error(`an event of a watch without an object: ${type}`);
    if (type === "BOOKMARK") {
      const isWhole = given.metadata.annotations?.["k8s.io/initial-events-end"] === "true";
      if (initial !== undefined && !isWhole) return initial;
      this.#version = version;
      if (initial !== undefined) this.#tellAll(initial);
      // A kind of which nothing is told has bookmarks alone: the next gap is not waited out as if it went on.
      this.#isWell();
      return undefined;
    }
    if (type !== "ADDED" && type !== "MODIFIED" && type !== "DELETED") return initial;
    if (initial !== undefined) {
      initial.push(given);
      return initial;
    }
    this.#version = version;
    this.#options.onChange(type, given);
    this.#isWell();
    return undefined;
  }

  /** The oldest first: where two objects speak of one thing, the older one does in Istio. */
  #tellAll(objects: readonly KubernetesObject[]): void {
    const { kind } = this.#options;
    const { apiVersion } = this.#served;
    const dated = objects.map((object) => ({ apiVersion, kind, ...object }));
    this.#options.onList(dated.toSorted(byAge));
    this.#hasListed = true;
    this.#listed.resolve();
  }

  #isWell(): void {
    this.#tries = 0;
    this.#timesMissing = 0;
    this.#trouble.end(`${this.#served.path} is followed again`);
  }

  #wait(delayMs: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const { signal } = this.#ending;
    const end = (): void => {
      cancel();
      signal.removeEventListener("abort", end);
      resolve();
    };
    const cancel = this.#options.clock.after(delayMs, end);
    signal.addEventListener("abort", end);
    return promise;
  }
}

function byAge(a: KubernetesObject, b: KubernetesObject): number {
  return ageOf(a) < ageOf(b) ? -1 : ageOf(a) > ageOf(b) ? 1 : 0;
}

function ageOf({ metadata: { creationTimestamp = "", namespace = "", name } }: KubernetesObject): string {
  return `${creationTimestamp} ${namespace}/${name}`;
}
