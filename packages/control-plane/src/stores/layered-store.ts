// The store of a control plane without Kubernetes: the user's folder of manifests below, what was applied over the API
// above it. An applied resource beats the folder's until it is deleted; pods and endpoints live as long as whoever runs
// them.
import path from "node:path";
import { readFile, writeFile, mkdir } from "node:fs/promises";
import type { Clock } from "@tulle/timing";
import {
  type ApplyOptions,
  type ApplyResult,
  type DeleteOptions,
  type Finding,
  type Kind,
  kindDefinitions,
  type Loaded,
  keyOf,
  keyText,
  MemoryStore,
  type MeshResource,
  placeOf,
  type ResourceKey,
  sameContent,
  StoreOverMemory,
  StoreRefusal,
} from "@tulle/config";
import { type Logger, Trouble } from "@tulle/telemetry";
import { type ManifestContent, ManifestFolder } from "./manifest-folder.ts";
import { Overlay } from "./overlay.ts";
import { storeWithPlaces, takenAlready } from "./service-places.ts";

/** Who changes what lies in the folder: no file says whose editor it was. */
const byFile = { by: "an edit of the file" } as const;

export interface LayeredStoreOptions {
  /** Folder of manifests; none means that the overlay is all there is. */
  readonly folder: string | undefined;
  readonly stateDirectory: string;
  /** Forget what was applied before. */
  readonly fresh: boolean;
  /** Who runs the pods; empty when nobody says. Those of another owner are forgotten: their processes are gone. */
  readonly runtimeOwner: string;
  /** Services that name no address get one of these, one range of each family at the most; empty: they get none. */
  readonly clusterRanges?: readonly string[] | undefined;
  readonly analyze: (resources: readonly MeshResource[], options: Pick<Loaded, "drafts">) => readonly Finding[];
  readonly clock: Clock;
  readonly log: Logger;
}

export class LayeredStore extends StoreOverMemory {
  readonly #overlay: Overlay;
  readonly #runtime: Overlay;
  readonly #folder: ManifestFolder | undefined;
  #files: ReadonlyMap<string, MeshResource> = new Map();
  readonly #applied = new Map<string, MeshResource>();
  readonly #diskTrouble: Trouble;
  /** Pods have somebody who runs them, and who ends what is deleted. */
  readonly #hasRuntime: boolean;
  /** Services have addresses that are given here. */
  readonly #hasPlaces: boolean;
  #overlayFindings: readonly Finding[] = [];

  private constructor(options: LayeredStoreOptions) {
    const { analyze, clusterRanges = [] } = options;
    super(clusterRanges.length === 0 ? new MemoryStore({ analyze }) : storeWithPlaces(clusterRanges, analyze));
    this.#diskTrouble = new Trouble(options.log);
    this.#hasRuntime = options.runtimeOwner !== "";
    this.#hasPlaces = clusterRanges.length > 0;
    this.#overlay = new Overlay(path.join(options.stateDirectory, "applied"));
    this.#runtime = new Overlay(path.join(options.stateDirectory, "runtime"));
    const { folder, clock, log } = options;
    this.#folder =
      folder === undefined
        ? undefined
        : new ManifestFolder({ folder, clock, log, onLoad: (content) => this.#filesLoaded(content) });
  }

  /** Resolves once everything that is there has been read. */
  static async open(options: LayeredStoreOptions): Promise<LayeredStore> {
    const store = new LayeredStore(options);
    await store.#forgetOthers(options);
    const loads = [await store.#overlay.load(), await store.#runtime.load()];
    store.#overlayFindings = loads.flatMap((load) => load.findings);
    const applied = loads.flatMap((load) => load.resources);
    for (const resource of applied) store.#applied.set(keyText(keyOf(resource)), resource);
    if (store.#folder === undefined) store.memory.setLoadFindings(store.#overlayFindings);
    else await store.#folder.start();
    await store.memory.applyAll(applied);
    return store;
  }

  /**
   * Kept on disk before it takes effect. Applying just what a file says gives the object back to its file. Pods and
   * endpoints take effect even where the disk is full: whoever runs them writes them anew to a control plane that has
   * lost them.
   * @throws {StoreRefusal} for a Service that names what another one has, where Services have addresses
   */
  async apply(given: MeshResource, options: ApplyOptions = {}): Promise<ApplyResult> {
    const key = keyText(keyOf(given));
    const taken = this.#hasPlaces ? takenAlready(given, this.list("Service")) : undefined;
    if (taken !== undefined) throw new StoreRefusal("conflict", taken);
    const resource = keepMark(given, this.#applied.get(key));
    const inFile = this.#files.get(key);
    const layer = this.#layerOf(resource.kind);
    if (inFile !== undefined && sameContent(inFile, resource)) {
      await this.#replaceApplied(key, undefined, () => layer.remove(keyOf(resource)));
    } else {
      await this.#replaceApplied(key, resource, () => layer.put(resource));
    }
    // Another apply of the same object may have come while this one was written: the last one asked for stands.
    return this.memory.apply(this.#applied.get(key) ?? inFile ?? resource, options);
  }

  /** Deleting an applied resource brings back what a file says of it. @throws {StoreRefusal} */
  async delete(key: ResourceKey, { atOnce = false, by }: DeleteOptions = {}): Promise<MeshResource | undefined> {
    const text = keyText(key);
    const inFile = this.#files.get(text);
    const applied = this.#applied.get(text);
    if (applied === undefined) {
      if (inFile === undefined) return undefined;
      const place = placeOf(inFile);
      const where = place === undefined ? "a manifest" : `${place.file}:${place.line}`;
      throw new StoreRefusal("conflict", `${key.kind} ${key.name} is defined in ${where}: remove it there`);
    }
    if (this.#hasRuntime && !atOnce && isOnNode(applied)) {
      const deletionTimestamp = new Date().toISOString();
      return (await this.apply({ ...applied, metadata: { ...applied.metadata, deletionTimestamp } }, { by })).resource;
    }
    await this.#replaceApplied(text, undefined, () => this.#layerOf(applied.kind).remove(key));
    if (this.#applied.has(text)) return applied;
    if (inFile !== undefined) await this.memory.apply(inFile, { by });
    else await this.memory.delete(key, { by });
    return applied;
  }

  async close(): Promise<void> {
    await this.#folder?.close();
  }

  /** Known at once, since others may come while it is written; forgotten again when it cannot be. */
  async #replaceApplied(key: string, resource: MeshResource | undefined, write: () => Promise<void>): Promise<void> {
    const before = this.#applied.get(key);
    const set = (value: MeshResource | undefined): void => {
      if (value === undefined) this.#applied.delete(key);
      else this.#applied.set(key, value);
    };
    set(resource);
    const isRuntime = isOfPlatform((resource ?? before)?.kind ?? "Pod");
    try {
      await write();
      if (isRuntime) this.#diskTrouble.end("pods and endpoints can be saved again");
    } catch (error) {
      if (isRuntime) return this.#diskTrouble.begin(`pods and endpoints cannot be saved: ${String(error)}`);
      if (this.#applied.get(key) === resource) set(before);
      throw error;
    }
  }

  #layerOf(kind: Kind): Overlay {
    return isOfPlatform(kind) ? this.#runtime : this.#overlay;
  }

  async #filesLoaded({ resources, findings, drafts }: ManifestContent): Promise<void> {
    const gone = [...this.#files.keys()].filter((key) => !resources.has(key) && !this.#applied.has(key));
    const goneKeys = gone.map((key) => keyOf(this.#files.get(key)!));
    this.#files = resources;
    this.memory.setLoadFindings([...findings, ...this.#overlayFindings], drafts);
    // What was applied stands in its file's place in the order, or the order would differ after a restart.
    const changed = [...resources].map(([key, resource]) => this.#applied.get(key) ?? resource);
    await Promise.all([
      ...goneKeys.map((key) => this.memory.delete(key, byFile)),
      this.memory.applyAll(changed, byFile),
    ]);
  }

  /**
   * A control plane that its owner starts again goes on where it stopped, whatever its first start was told to forget.
   */
  async #forgetOthers({ stateDirectory, runtimeOwner, fresh }: LayeredStoreOptions): Promise<void> {
    const file = path.join(stateDirectory, "runtime-owner");
    const goesOn = (await readFile(file, "utf8").catch(() => undefined)) === runtimeOwner;
    if (fresh && !(goesOn && runtimeOwner !== "")) await this.#overlay.clear();
    if (goesOn) return;
    await this.#runtime.clear();
    await mkdir(stateDirectory, { recursive: true, mode: 0o700 });
    await writeFile(file, runtimeOwner, { mode: 0o600 });
  }
}

/** Kubernetes' own sign of a pod that a kubelet runs, and has to end. */
function isOnNode(resource: MeshResource): boolean {
  return resource.kind === "Pod" && resource.spec.nodeName !== undefined;
}

/**
 * Whoever writes a pod's state must not undo that it was deleted: the mark stays for as long as the pod is this one.
 */
function keepMark(given: MeshResource, present: MeshResource | undefined): MeshResource {
  const deletionTimestamp = present?.metadata.deletionTimestamp;
  if (deletionTimestamp === undefined || given.kind !== "Pod" || given.metadata.uid !== present?.metadata.uid)
    return given;
  return { ...given, metadata: { ...given.metadata, deletionTimestamp } };
}

function isOfPlatform(kind: Kind): boolean {
  return kindDefinitions[kind].writtenBy === "platform";
}
