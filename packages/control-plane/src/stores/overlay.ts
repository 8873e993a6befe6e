// Resources that were applied over the API, one file each in a folder of the state directory, so that they survive a
// restart.
import { mkdir, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import {
  type Finding,
  keyOf,
  type MeshResource,
  parseResource,
  placesOf,
  type PlaceTable,
  type ResourceKey,
} from "@tulle/config";

interface StoredResource {
  /** Counts up from object to object: which of two was there first decides conflicts, before a restart and after it. */
  readonly number?: number;
  readonly resource: unknown;
  readonly places?: PlaceTable;
}

export interface OverlayContent {
  readonly resources: readonly MeshResource[];
  readonly findings: readonly Finding[];
}

export class Overlay {
  readonly #folder: string;
  /** Writes of one folder follow each other, so that the last one asked for is the last one done. */
  #writes: Promise<void> = Promise.resolve();
  #writeNumber = 0;
  /** By file name. */
  readonly #numbers = new Map<string, number>();
  #lastNumber = 0;

  constructor(folder: string) {
    this.#folder = folder;
  }

  /**
   * Everything kept, in the order in which it came to be; a file that cannot be read any more is set aside with a
   * finding.
   */
  async load(): Promise<OverlayContent> {
    const names = (await readdir(this.#folder).catch(() => [])).filter((name) => name.endsWith(".json")).sort();
    const resources: { readonly number: number; readonly resource: MeshResource }[] = [];
    const findings: Finding[] = [];
    for (const name of names) {
      const file = path.join(this.#folder, name);
      try {
        const stored = JSON.parse(await readFile(file, "utf8")) as StoredResource;
        const parsed = parseResource(stored.resource, stored.places);
        findings.push(...parsed.findings);
        if (parsed.resource === undefined) continue;
        const { number = 0 } = stored;
        this.#numbers.set(name, number);
        this.#lastNumber = Math.max(this.#lastNumber, number);
        resources.push({ number, resource: parsed.resource });
      } catch (error) {
        const message = `the saved resource cannot be read${reason(name, error)}`;
        findings.push({
          code: "TUL0002",
          severity: "error",
          message: `${message}; ${await setAside(file)}`,
          place: { file, line: 1, column: 1 },
        });
      }
    }
    // Sorting is stable: those without a number stay in the order of namespace and name.
    const inOrder = resources.toSorted((a, b) => a.number - b.number);
    return { resources: inOrder.map(({ resource }) => resource), findings };
  }

  put(resource: MeshResource): Promise<void> {
    const places = placesOf(resource);
    const name = fileNameOf(keyOf(resource));
    const file = path.join(this.#folder, name);
    let number = this.#numbers.get(name);
    if (number === undefined) this.#numbers.set(name, (number = this.#lastNumber += 1));
    const stored: StoredResource = { number, resource, ...(places === undefined ? {} : { places }) };
    return this.#next(async () => {
      await mkdir(this.#folder, { recursive: true, mode: 0o700 });
      // Replaced in one step: a process that dies here leaves the old version or the new one.
      const aside = `${file}.${process.pid}.${(this.#writeNumber += 1)}`;
      await writeFile(aside, JSON.stringify(stored), { mode: 0o600 });
      await rename(aside, file);
    });
  }

  remove(key: ResourceKey): Promise<void> {
    const name = fileNameOf(key);
    this.#numbers.delete(name);
    return this.#next(() => rm(path.join(this.#folder, name), { force: true }));
  }

  clear(): Promise<void> {
    this.#numbers.clear();
    return this.#next(() => rm(this.#folder, { recursive: true, force: true }));
  }

  #next(write: () => Promise<void>): Promise<void> {
    const done = this.#writes.then(write);
    this.#writes = done.catch(() => undefined);
    return done;
  }
}

/** For whoever wants to save something of it, and so that the next start does not find it again. */
async function setAside(file: string): Promise<string> {
  const keptAs = `${file}.refused`;
  return rename(file, keptAs).then(
    () => `it was set aside as ${path.basename(keptAs)}`,
    (error: Error) => `it could not be set aside: ${error.message}`,
  );
}

// Kinds, namespaces and names are DNS names or single words once checked; encoding keeps anything else inside the
// folder.
function fileNameOf({ kind, namespace, name }: ResourceKey): string {
  return `${[namespace, name, kind].map(encodeURIComponent).join("~")}.json`;
}

/** V8 quotes what stands around a mistake in JSON; of a Secret nothing may be quoted. */
function reason(fileName: string, error: unknown): string {
  return fileName.endsWith("~Secret.json") ? "" : `: ${(error as Error).message}`;
}
