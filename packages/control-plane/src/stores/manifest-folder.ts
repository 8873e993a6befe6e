// The folder of manifests that the user edits: loaded at the start and again after every change, with the last good
// version of whatever cannot be read now.
import { type FSWatcher, watch } from "node:fs";
import path from "node:path";
import type { Clock } from "@tulle/timing";
import { type Finding, keyOf, keyText, loadPathsApart, type MeshResource, placesOf } from "@tulle/config";
import type { Logger } from "@tulle/telemetry";
import { Debounce } from "../serve/debounce.ts";

/** Editors write a file in several steps, and a checkout writes many files. */
const reloadTimes = { quietMs: 50, maxMs: 1_000 };
/**
 * After a change that could not be taken at all, for want of memory or threads: nobody tells when there is some again.
 */
const retryMs = 2_000;

export interface ManifestFolderOptions {
  readonly folder: string;
  readonly clock: Clock;
  readonly log: Logger;
  /** The resources and findings after a change. Calls follow each other. */
  readonly onLoad: (content: ManifestContent) => Promise<void>;
}

export interface ManifestContent {
  readonly resources: ReadonlyMap<string, MeshResource>;
  readonly findings: readonly Finding[];
  /** What is left of refused documents, for analysis alone. */
  readonly drafts: readonly MeshResource[];
}

export class ManifestFolder {
  readonly #options: ManifestFolderOptions;
  readonly #debounce: Debounce;
  #watcher: FSWatcher | undefined;
  #resources: ReadonlyMap<string, MeshResource> = new Map();
  /** Settles when nothing is being loaded; never rejects. */
  #loading: Promise<void> = Promise.resolve();
  #isClosed = false;
  #cancelRetry: (() => void) | undefined;

  constructor(options: ManifestFolderOptions) {
    this.#options = options;
    this.#debounce = new Debounce(reloadTimes, options.clock, () => void this.#follow());
  }

  /** Loads, then watches. Rejects when the folder cannot be watched. */
  async start(): Promise<void> {
    const watcher = watch(this.#options.folder, () => this.#debounce.signal());
    watcher.on("error", (error) =>
      this.#options.log.warning("the folder is not watched any more", { error: error.message }),
    );
    this.#watcher = watcher;
    await this.#reload();
  }

  async close(): Promise<void> {
    this.#watcher?.close();
    this.#debounce.close();
    this.#isClosed = true;
    this.#cancelRetry?.();
    await this.#loading;
  }

  /** Takes a change. What cannot be taken now is tried again: the control plane goes on with what it has. */
  async #follow(): Promise<void> {
    this.#cancelRetry?.();
    try {
      await this.#reload();
    } catch (error) {
      if (this.#isClosed) return;
      const reason = error instanceof Error ? error.message : String(error);
      this.#options.log.error("a change of the manifests could not be taken, and is tried again", { error: reason });
      this.#cancelRetry = this.#options.clock.after(retryMs, () => void this.#follow());
    }
  }

  /** One after the other, whatever became of the one before. */
  #reload(): Promise<void> {
    const loading = this.#loading.then(() => this.#load());
    this.#loading = loading.catch(() => undefined);
    return loading;
  }

  async #load(): Promise<void> {
    const loaded = await loadPathsApart([this.#options.folder]);
    this.#resources = mergeLastGood(this.#resources, loaded.resources, loaded.findings);
    await this.#options.onLoad({ resources: this.#resources, findings: loaded.findings, drafts: loaded.drafts });
  }
}

/**
 * What is there now, and of what is not: the last good version where an error, not the user's eraser, is the reason.
 */
export function mergeLastGood(
  before: ReadonlyMap<string, MeshResource>,
  loaded: readonly MeshResource[],
  findings: readonly Finding[],
): ReadonlyMap<string, MeshResource> {
  const errors = findings.filter((finding) => finding.severity === "error");
  const badKeys = new Set(
    errors.flatMap((finding) => (finding.resource === undefined ? [] : [keyText(finding.resource)])),
  );
  // A document that names no object could have been any of its file's, and a folder that cannot be read holds any file.
  const badFiles = new Set(
    errors.flatMap((finding) => (finding.resource === undefined ? (finding.place?.file ?? []) : [])),
  );
  const isBad = (file: string): boolean => badFiles.has(file) || badFiles.has(path.dirname(file));
  const now = new Map(loaded.map((resource) => [keyText(keyOf(resource)), resource]));
  const merged = new Map<string, MeshResource>();
  for (const [key, resource] of before) {
    const current = now.get(key);
    const file = placesOf(resource)?.file;
    if (current !== undefined) merged.set(key, current);
    else if (badKeys.has(key) || (file !== undefined && isBad(file))) merged.set(key, resource);
  }
  for (const [key, resource] of now) merged.set(key, resource);
  return merged;
}
