/**
 * The store in memory: what files and `tulle apply` are kept in, and what tests use. It numbers every change, keeps the
 * last ones so that a watcher may go on where it stopped, and tells listeners in batches.
 */
import type { Finding } from "../findings/finding.ts";
import { type Kind, kindDefinitions } from "../kinds/kinds.ts";
import { attachPlaces, placesOf } from "../findings/places.ts";
import { keyOf, keyText, sameContent } from "../kinds/resource.ts";
import type { MeshResource, ResourceOf } from "../kinds/resource.ts";
import type { ResourceKey } from "../findings/finding.ts";
import type { ApplyOptions, ApplyResult, Store, StoreChange, StoreListener, Unwatch } from "./store.ts";

/** Changes kept for watchers that come back; beyond it they list anew. */
export const defaultHistoryChanges = 4096;

/** What is left of refused documents (see `AnalyzeOptions`). */
interface Drafts {
  readonly drafts: readonly MeshResource[];
}

export interface MemoryStoreOptions {
  /** Analysis that `findings` runs over all resources; none when missing. */
  readonly analyze?: (resources: readonly MeshResource[], options: Drafts) => readonly Finding[];
  readonly historyChanges?: number;
  /**
   * What the store adds to resources that come together, as an API server does to those that do not say everything: as
   * many, in their order.
   */
  readonly complete?: (resources: readonly MeshResource[]) => readonly MeshResource[];
  /**
   * The version before the first change. The default is the time in microseconds, so that a version from before a
   * restart is older than everything here, and its holder is told to list anew instead of missing changes.
   */
  readonly initialResourceVersion?: number;
}

export class MemoryStore implements Store {
  readonly #analyze: (resources: readonly MeshResource[], options: Drafts) => readonly Finding[];
  readonly #historyChanges: number;
  readonly #complete: NonNullable<MemoryStoreOptions["complete"]>;
  /** Insertion order is the order in which objects were first seen. */
  readonly #resources = new Map<string, MeshResource>();
  readonly #byKind = new Map<Kind, Map<string, MeshResource>>();
  readonly #listeners = new Set<StoreListener>();
  #history: StoreChange[] = [];
  /** Version after which the history is complete. */
  #historyStart: number;
  #resourceVersion: number;
  #pending: StoreChange[] = [];
  #delivery: Promise<void> | undefined;
  #loadFindings: readonly Finding[] = [];
  #drafts: readonly MeshResource[] = [];
  #analysis: { readonly resourceVersion: number; readonly findings: readonly Finding[] } | undefined;

  constructor(options: MemoryStoreOptions = {}) {
    this.#analyze = options.analyze ?? (() => []);
    this.#historyChanges = options.historyChanges ?? defaultHistoryChanges;
    this.#complete = options.complete ?? ((resources) => resources);
    this.#resourceVersion = options.initialResourceVersion ?? Date.now() * 1000;
    this.#historyStart = this.#resourceVersion;
  }

  get resourceVersion(): number {
    return this.#resourceVersion;
  }

  list<K extends Kind>(kind: K, namespace?: string): readonly ResourceOf<K>[] {
    const ofKind = [...(this.#byKind.get(kind)?.values() ?? [])] as ResourceOf<K>[];
    return namespace === undefined ? ofKind : ofKind.filter(({ metadata }) => metadata.namespace === namespace);
  }

  all(): readonly MeshResource[] {
    return [...this.#resources.values()];
  }

  get<K extends Kind>(kind: K, namespace: string, name: string): ResourceOf<K> | undefined {
    return this.#resources.get(keyText({ kind, namespace, name })) as ResourceOf<K> | undefined;
  }

  watch(listener: StoreListener): Unwatch {
    // Each call is its own subscription, even of the same function.
    const subscription: StoreListener = (changes) => listener(changes);
    this.#listeners.add(subscription);
    return () => {
      this.#listeners.delete(subscription);
    };
  }

  changesSince(resourceVersion: number): readonly StoreChange[] | undefined {
    if (resourceVersion < this.#historyStart || resourceVersion > this.#resourceVersion) return undefined;
    return this.#history.slice(this.#history.length - (this.#resourceVersion - resourceVersion));
  }

  async apply(resource: MeshResource, { by }: ApplyOptions = {}): Promise<ApplyResult> {
    const [complete] = this.#complete([resource]);
    const { outcome, resource: stored } = this.#put(resource, complete!, by);
    await this.#delivery;
    // What machines write, and often, does not analyze the mesh.
    const isOfUser = kindDefinitions[resource.kind].writtenBy === "user";
    const findings = isOfUser ? this.#findingsOf(keyOf(stored)) : [];
    return { outcome, resource: stored, findings };
  }

  /** Creates or replaces several resources as one batch for the listeners. */
  async applyAll(
    resources: readonly MeshResource[],
    { by }: ApplyOptions = {},
  ): Promise<readonly Pick<ApplyResult, "outcome" | "resource">[]> {
    const complete = this.#complete(resources);
    const results = resources.map((resource, index) => this.#put(resource, complete[index]!, by));
    await this.#delivery;
    return results;
  }

  async delete(key: ResourceKey, { by }: ApplyOptions = {}): Promise<MeshResource | undefined> {
    const text = keyText(key);
    const previous = this.#resources.get(text);
    if (previous === undefined) return undefined;
    this.#resources.delete(text);
    this.#byKind.get(previous.kind)?.delete(text);
    this.#record({ type: "deleted", resource: previous, previous }, by);
    await this.#delivery;
    return previous;
  }

  /**
   * What loading found about documents that did not become resources, or did so with a warning. Replaces the earlier
   * list.
   */
  setLoadFindings(findings: readonly Finding[], drafts: readonly MeshResource[] = []): void {
    this.#loadFindings = findings;
    this.#drafts = drafts;
    this.#analysis = undefined;
  }

  findings(): readonly Finding[] {
    if (this.#analysis?.resourceVersion !== this.#resourceVersion) {
      // The last good version of a document that is refused now is what counts.
      const drafts = this.#drafts.filter((draft) => !this.#resources.has(keyText(keyOf(draft))));
      this.#analysis = { resourceVersion: this.#resourceVersion, findings: this.#analyze(this.all(), { drafts }) };
    }
    return [...this.#loadFindings, ...this.#analysis.findings];
  }

  #findingsOf(key: ResourceKey): readonly Finding[] {
    const text = keyText(key);
    return this.findings().filter((finding) => finding.resource !== undefined && keyText(finding.resource) === text);
  }

  #put(given: MeshResource, resource: MeshResource, by: string | undefined): Pick<ApplyResult, "outcome" | "resource"> {
    const text = keyText(keyOf(given));
    const previous = this.#resources.get(text);
    if (previous !== undefined && sameContent(previous, resource)) {
      // The text may have moved in its file all the same.
      const places = placesOf(given);
      if (places !== undefined) attachPlaces(previous, places);
      return { outcome: "unchanged", resource: previous };
    }
    const metadata = { ...resource.metadata, resourceVersion: String(this.#resourceVersion + 1) };
    const stored: MeshResource = attachPlaces({ ...resource, metadata }, placesOf(given));
    this.#resources.set(text, stored);
    const ofKind = this.#byKind.get(stored.kind) ?? new Map<string, MeshResource>();
    ofKind.set(text, stored);
    this.#byKind.set(stored.kind, ofKind);
    if (previous === undefined) this.#record({ type: "added", resource: stored }, by);
    else this.#record({ type: "modified", resource: stored, previous }, by);
    return { outcome: previous === undefined ? "created" : "configured", resource: stored };
  }

  #record(change: Omit<StoreChange, "resourceVersion" | "by">, by: string | undefined): void {
    this.#resourceVersion += 1;
    const { resourceVersion } = this;
    const numbered: StoreChange = { ...change, resourceVersion, ...(by === undefined ? {} : { by }) };
    this.#history.push(numbered);
    // Cut in one go when twice as long as needed, so that a change costs no shift of the whole window.
    if (this.#history.length > 2 * this.#historyChanges) {
      this.#history = this.#history.slice(-this.#historyChanges);
      this.#historyStart = this.#resourceVersion - this.#historyChanges;
    }
    this.#pending.push(numbered);
    // All changes of one turn reach the listeners as one batch.
    this.#delivery ??= Promise.resolve().then(() => this.#deliver());
  }

  #deliver(): void {
    const changes = this.#pending;
    this.#pending = [];
    this.#delivery = undefined;
    // A copy: a listener that registers another one does not hand it changes from before its time.
    const listeners = [...this.#listeners];
    for (const listener of listeners) if (this.#listeners.has(listener)) listener(changes);
  }
}
