// The store of a control plane on Kubernetes: what the API server has, followed kind by kind. It is open once all of it
// has been listed. Reads come from memory, writes go to the API server, and count once its watch has told of them.
import {
  type ApplyOptions,
  type ApplyResult,
  type DeleteOptions,
  type Finding,
  effectiveNamespace,
  isKind,
  keyOf,
  keyText,
  type Loaded,
  MemoryStore,
  type MeshResource,
  parseResource,
  type ResourceKey,
  StoreOverMemory,
  StoreRefusal,
  type Unwatch,
} from "@tulle/config";
import type { Logger } from "@tulle/telemetry";
import type { Clock } from "@tulle/timing";
import type { KubernetesClient } from "../client/kubernetes-client.ts";
import { KubernetesError } from "../client/kubernetes-error.ts";
import { type KubernetesObject, ObjectFollower } from "../follow/object-follower.ts";
import { istioRevisionLabel, revisionLabel } from "../names.ts";
import { type Collection, type CollectionChoice, collectionsOf, isOwn, objectPath } from "./collections.ts";
import { SecretReader } from "./secret-reader.ts";
import { decidesOnSecrets, wantedSecrets } from "./wanted-secrets.ts";

export interface KubernetesStoreOptions extends CollectionChoice {
  readonly client: KubernetesClient;
  /** Whose control plane reads. What bears the name of another one is that one's alone. */
  readonly revision: string;
  readonly analyze: (resources: readonly MeshResource[], options: Pick<Loaded, "drafts">) => readonly Finding[];
  readonly clock: Clock;
  readonly random?: () => number;
  readonly log: Logger;
}

/** The name under which the API server keeps who set which field. */
export const fieldManager = "tulle";
/** How long a write waits until the watch tells of it; it was done all the same. */
const echoMs = 10_000;

type Labels = Readonly<Record<string, string>>;

/** An object as one collection has it. */
interface Held {
  readonly key: ResourceKey;
  readonly rank: number;
  /** Of the API server. */
  readonly version: string | undefined;
  /** The last one that could be read. */
  readonly resource: MeshResource | undefined;
  /** Of the mesh's own kinds. */
  readonly told: FollowedObject | undefined;
}

/** What an object of the mesh's own kinds says of itself; somebody tells what has become of it. */
export interface FollowedObject {
  readonly key: ResourceKey;
  readonly apiVersion: string;
  /** Of the API server; another one for each change, and for an object that was made anew. */
  readonly version: string | undefined;
  readonly generation: number;
  readonly status: unknown;
  /** It could be read as it is now. */
  readonly isRead: boolean;
  /** Another group holds the name, and counts. */
  readonly isShadowed: boolean;
}

interface Echo {
  /** Resolves when the watch has told of that version (undefined: that it is gone), or when that takes too long. */
  of(version: string | undefined): Promise<void>;
  end(): void;
}

export class KubernetesStore extends StoreOverMemory {
  readonly #options: KubernetesStoreOptions;
  readonly #followers: readonly ObjectFollower[];
  readonly #secrets: SecretReader;
  /** By the object's key, then by the collection's path. */
  readonly #held = new Map<string, Map<string, Held>>();
  /** Who waits for what the watch tells of an object. */
  readonly #hearing = new Map<string, Set<(version: string | undefined) => void>>();
  readonly #unwatch: Unwatch;
  /** What was found in objects when they were read, by collection and key. */
  readonly #found = new Map<string, readonly Finding[]>();
  #findingsAreDue = false;
  /** How often an object came that cannot be read. */
  #unread = 0;
  #onUnread: ((times: number) => void) | undefined;

  private constructor(options: KubernetesStoreOptions) {
    super(new MemoryStore({ analyze: options.analyze }));
    this.#options = options;
    const { client, clock, log, random = Math.random } = options;
    const common = { client, clock, log, random };
    this.#followers = collectionsOf(options).map(
      (collection) =>
        new ObjectFollower({
          ...common,
          ...collection,
          onList: (objects) => this.#replace(collection, objects),
          onChange: (type, object) => {
            if (type === "DELETED") this.#drop(collection, keyOfObject(collection, object));
            else this.#put(collection, object);
          },
        }),
    );
    const secrets: Collection = { kind: "Secret", apiVersion: "v1", path: "/api/v1/secrets", rank: 0 };
    this.#secrets = new SecretReader({
      ...common,
      onSecret: (secret) => this.#put(secrets, secret),
      onGone: (namespace, name) => this.#drop(secrets, { kind: "Secret", namespace, name }),
    });
    this.#unwatch = this.memory.watch((changes) => {
      if (changes.some(({ resource }) => decidesOnSecrets(resource))) this.#secrets.want(wantedSecrets(this.memory));
    });
  }

  /** Those of the mesh's own kinds, in all groups that are followed. */
  objects(): readonly FollowedObject[] {
    return [...this.#held.values()].flatMap((held) => {
      const all = [...held.values()].flatMap(({ told, rank }) => (told === undefined ? [] : [{ told, rank }]));
      const least = Math.min(...all.map(({ rank }) => rank));
      return all.map(({ told, rank }) => (rank === least ? told : { ...told, isShadowed: true }));
    });
  }

  /** One listener: how often an object came that cannot be read, first until now, then each time. */
  followUnread(listener: (times: number) => void): void {
    this.#onUnread = listener;
    listener(this.#unread);
  }

  /** Resolves once everything that is there has been read; tries until then, or until it is given up. */
  static async open(options: KubernetesStoreOptions, givenUp?: AbortSignal): Promise<KubernetesStore> {
    const store = new KubernetesStore(options);
    const giveUp = (): void => void store.close();
    try {
      givenUp?.addEventListener("abort", giveUp);
      await Promise.all([...store.#followers, store.#secrets].map((follower) => follower.start()));
    } catch (error) {
      await store.close();
      throw error;
    } finally {
      // A control plane that is told to end serves for a while, and its proxies are to hear whose pods have gone.
      givenUp?.removeEventListener("abort", giveUp);
    }
    return store;
  }

  async close(): Promise<void> {
    this.#unwatch();
    await Promise.all([...this.#followers, this.#secrets].map((follower) => follower.close()));
  }

  /** By server-side apply: fields that others set stay theirs. @throws {StoreRefusal} */
  async apply(resource: MeshResource, _options: ApplyOptions = {}): Promise<ApplyResult> {
    const { apiVersion, kind, metadata } = resource;
    const { name, namespace, labels, annotations, ownerReferences } = metadata;
    // What the server sets is not ours to say.
    const own = { name, labels, annotations, ownerReferences, ...(namespace === "" ? {} : { namespace }) };
    const key = keyOf(resource);
    const before = this.get(kind, namespace, name);
    const versionBefore = this.#versionOf(key);
    const echo = this.#echoOf(key);
    try {
      const path = objectPath(apiVersion, kind, namespace, name);
      const body = { ...resource, metadata: own };
      const { client } = this.#options;
      let written = await orRefused(client.apply<KubernetesObject>(path, body, fieldManager));
      // The API server takes the status of the mesh's kinds by a way of its own alone.
      if ("status" in resource && resource.status !== undefined && isOwn(resource)) {
        const status = { apiVersion, kind, metadata: { name, namespace }, status: resource.status };
        written = await orRefused(client.apply<KubernetesObject>(`${path}/status`, status, fieldManager));
      }
      const version = written.metadata.resourceVersion;
      if (version !== versionBefore) await echo.of(this.#isRead(resource) ? version : undefined);
      const changed = before === undefined ? "created" : "configured";
      return {
        outcome: version === versionBefore ? "unchanged" : changed,
        resource: this.get(kind, namespace, name) ?? resource,
        findings: this.#findingsOf(key),
      };
    } finally {
      echo.end();
    }
  }

  /** @throws {StoreRefusal} */
  async delete(key: ResourceKey, { atOnce = false }: DeleteOptions = {}): Promise<MeshResource | undefined> {
    const { kind, namespace, name } = key;
    const present = isKind(kind) ? this.get(kind, namespace, name) : undefined;
    if (present === undefined) return undefined;
    const echo = this.#echoOf(key);
    try {
      const request = {
        method: "DELETE",
        path: objectPath(present.apiVersion, present.kind, namespace, name),
        body: { apiVersion: "v1", kind: "DeleteOptions", ...(atOnce ? { gracePeriodSeconds: 0 } : {}) },
      } as const;
      try {
        await this.#options.client.request(request);
      } catch (error) {
        // Somebody else was faster.
        if (error instanceof KubernetesError && error.code === 404) return undefined;
        throw refusalOf(error);
      }
      if (atOnce) await echo.of(undefined);
      return present;
    } finally {
      echo.end();
    }
  }

  /** What the watch tells of an object from now on. */
  #echoOf(key: ResourceKey): Echo {
    const text = keyText(key);
    const seen = new Set<string | undefined>();
    let look = (): void => undefined;
    const hear = (version: string | undefined): void => {
      seen.add(version);
      look();
    };
    const hearing = this.#hearing.get(text) ?? new Set();
    this.#hearing.set(text, hearing.add(hear));
    return {
      of: async (version) => {
        const { promise, resolve } = Promise.withResolvers<void>();
        const cancel = this.#options.clock.after(echoMs, resolve);
        look = () => {
          if (seen.has(version)) resolve();
        };
        look();
        await promise;
        cancel();
      },
      end: () => {
        hearing.delete(hear);
        if (hearing.size === 0) this.#hearing.delete(text);
      },
    };
  }

  /** Everything of a collection, in one turn: watchers see what a gap has changed as one batch. */
  #replace(collection: Collection, objects: readonly KubernetesObject[]): void {
    const there = new Set(objects.map((object) => keyText(keyOfObject(collection, object))));
    for (const [text, held] of this.#held) {
      const one = held.get(collection.path);
      if (one !== undefined && !there.has(text)) this.#drop(collection, one.key);
    }
    for (const object of objects) this.#put(collection, object);
  }

  #put(collection: Collection, object: KubernetesObject): void {
    const key = keyOfObject(collection, object);
    if (isOwn(collection) && !this.#isRead(object)) return this.#drop(collection, key);
    const text = keyText(key);
    const { apiVersion, kind } = collection;
    const { resource, findings } = parseResource({ apiVersion, kind, ...object });
    const held = this.#held.get(text) ?? new Map<string, Held>();
    // Of what cannot be read any more the last good version stays.
    const good = resource ?? held.get(collection.path)?.resource;
    const { resourceVersion: version, generation = 0 } = object.metadata;
    const isRead = resource !== undefined;
    if (!isRead) {
      this.#unread += 1;
      this.#onUnread?.(1);
    }
    const told = isOwn(collection)
      ? {
          key,
          apiVersion: object.apiVersion ?? apiVersion,
          version,
          generation,
          status: object.status,
          isRead,
          isShadowed: false,
        }
      : undefined;
    this.#held.set(text, held.set(collection.path, { key, rank: collection.rank, version, resource: good, told }));
    this.#note(`${collection.path} ${text}`, findings);
    this.#settle(key);
  }

  /** By the label of a resource of the mesh's kinds, if it has one (Istio's rule: the revision, no tag of it). */
  #isRead({ metadata }: { readonly metadata: { readonly labels?: Labels | undefined } }): boolean {
    const { labels } = metadata;
    const { revision } = this.#options;
    return (labels?.[revisionLabel] ?? labels?.[istioRevisionLabel] ?? revision) === revision;
  }

  #drop(collection: Collection, key: ResourceKey): void {
    const held = this.#held.get(keyText(key));
    held?.delete(collection.path);
    if (held?.size === 0) this.#held.delete(keyText(key));
    this.#note(`${collection.path} ${keyText(key)}`, []);
    this.#settle(key);
  }

  /** Brings the memory to what counts of an object now. */
  #settle(key: ResourceKey): void {
    const text = keyText(key);
    const counts = this.#counting(text);
    if (counts?.resource !== undefined) void this.memory.applyAll([counts.resource]);
    else void this.memory.delete(key);
    for (const hear of this.#hearing.get(text) ?? []) hear(counts?.version);
  }

  /** Where two groups hold one name, ours. */
  #counting(text: string): Held | undefined {
    return [...(this.#held.get(text)?.values() ?? [])].toSorted((a, b) => a.rank - b.rank)[0];
  }

  #versionOf(key: ResourceKey): string | undefined {
    return this.#counting(keyText(key))?.version;
  }

  /** What reading objects found, told once for all that come in a turn. */
  #note(place: string, findings: readonly Finding[]): void {
    if (findings.length === 0 && !this.#found.has(place)) return;
    if (findings.length === 0) this.#found.delete(place);
    else this.#found.set(place, findings);
    if (this.#findingsAreDue) return;
    this.#findingsAreDue = true;
    queueMicrotask(() => {
      this.#findingsAreDue = false;
      this.memory.setLoadFindings([...this.#found.values()].flat());
    });
  }

  #findingsOf(key: ResourceKey): readonly Finding[] {
    const text = keyText(key);
    return this.findings().filter(({ resource }) => resource !== undefined && keyText(resource) === text);
  }
}

function keyOfObject({ kind }: Collection, { metadata }: KubernetesObject): ResourceKey {
  return { kind, namespace: effectiveNamespace(kind, metadata.namespace), name: metadata.name };
}

/** In the words of whoever asks a store. */
async function orRefused<T>(asked: Promise<T>): Promise<T> {
  try {
    return await asked;
  } catch (error) {
    throw refusalOf(error);
  }
}

function refusalOf(error: unknown): unknown {
  if (!(error instanceof KubernetesError)) return error;
  const reason = error.code === 403 ? "forbidden" : error.code === 0 || error.code >= 429 ? "unavailable" : "conflict";
  return new StoreRefusal(reason, error.message);
}
