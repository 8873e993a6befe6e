/**
 * Reads manifests for a process that has others to serve meanwhile: small folders at once, large ones on a thread of
 * their own. A megabyte of YAML takes seconds to read, however it is written.
 */
import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { Worker } from "node:worker_threads";
import { type Loaded, loadPaths } from "./load.ts";
import { attachPlaces, placesOf, type PlaceTable } from "../findings/places.ts";
import type { MeshResource } from "../kinds/resource.ts";

/** What is read without a thread: it takes less time than a thread takes to start. */
export const maxBytesAtOnce = 64 * 1024;
/** A document of 3 MiB takes 200 MB at its worst. Beyond this the thread ends, and not the process. */
const maxThreadMegabytes = 1024;
const timeoutMs = 120_000;

/** What the thread answers: places lie beside resources and do not travel with them. */
export interface LoadedApart extends Loaded {
  /** Of the resources, then of the drafts. */
  readonly places: readonly (PlaceTable | undefined)[];
}

/** As `loadPaths`. A thread that fails gives a finding at each path, as for a path that cannot be read. */
export async function loadPathsApart(paths: readonly string[]): Promise<Loaded> {
  return (await totalBytes(paths)) <= maxBytesAtOnce ? loadPaths(paths) : loadOnThread(paths);
}

async function totalBytes(paths: readonly string[]): Promise<number> {
  const sizes = await Promise.all(paths.map(bytesOf));
  return sizes.reduce((sum, bytes) => sum + bytes, 0);
}

/** 0 for what cannot be read: `loadPaths` says so. */
async function bytesOf(path: string): Promise<number> {
  try {
    const stats = await stat(path);
    if (!stats.isDirectory()) return stats.size;
    const files = (await readdir(path)).filter((name) => /\.(ya?ml|json)$/i.test(name)).map((name) => join(path, name));
    const sizes = await Promise.all(files.map(async (file) => (await stat(file)).size));
    return sizes.reduce((sum, bytes) => sum + bytes, 0);
  } catch {
    return 0;
  }
}

function loadOnThread(paths: readonly string[]): Promise<Loaded> {
  const { promise, resolve } = Promise.withResolvers<Loaded>();
  const worker = new Worker(new URL("./load-thread.ts", import.meta.url), {
    workerData: paths,
    resourceLimits: { maxOldGenerationSizeMb: maxThreadMegabytes },
  });
  const fail = (reason: string): void => resolve(unreadable(paths, reason));
  const timer = setTimeout(() => {
    fail(`it took more than ${timeoutMs} ms`);
    void worker.terminate();
  }, timeoutMs);
  worker.once("message", ({ places, ...loaded }: LoadedApart) => {
    for (const [index, resource] of placed(loaded).entries()) attachPlaces(resource, places[index]);
    resolve(loaded);
  });
  worker.once("error", (error: Error) => fail(error.message));
  worker.once("exit", () => {
    clearTimeout(timer);
    fail("its thread ended");
  });
  return promise;
}

function placed({ resources, drafts }: Pick<Loaded, "resources" | "drafts">): readonly MeshResource[] {
  return [...resources, ...drafts];
}

function unreadable(paths: readonly string[], reason: string): Loaded {
  return {
    resources: [],
    drafts: [],
    files: [],
    findings: paths.map((path) => ({
      code: "TUL0002",
      severity: "error",
      message: `${path} cannot be read: ${reason}`,
      suggestion: "Split what is large into several files.",
      place: { file: path, line: 1, column: 1 },
    })),
  };
}

/** On the thread. */
export async function loadForPost(paths: readonly string[]): Promise<LoadedApart> {
  const loaded = await loadPaths(paths);
  return { ...loaded, places: placed(loaded).map(placesOf) };
}
