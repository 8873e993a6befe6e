// Finds the bundle that stands for a program's sources. It loads in half of the time that they take, and may be run
// only while it says what they say: each start compares. A clone's bundle is made by tools/bundle.ts.
import { existsSync, lstatSync, readFileSync, statSync, type Stats } from "node:fs";
import path from "node:path";

/** Beside the bundles, below `bundleFolder`. */
export const manifestName = "manifest.json";

/** Written by tools/bundle.ts. */
export interface BundleManifest {
  /** Of the clone that it was made for: paths of sources stand in it. */
  readonly root: string;
  /** Name of the bundle's folder. */
  readonly folder: string;
  /** Names of the files in it. */
  readonly files: readonly string[];
  /** What it was made of: paths below the root. */
  readonly sources: readonly string[];
  /** Of the sources, in that order: `statusesOf` them when they were read. */
  readonly statuses: readonly number[];
}

/** Where bundles of the clone at `root` lie: whoever may write here may change every dependency, too. */
export function bundleFolder(root: string): string {
  return `${root}/node_modules/.bundle`;
}

/**
 * What the statuses of these files say of their content, four numbers each: size, when it was written, when anything
 * of it was last changed (both in ms), and the file's number. No program can set the third: another content of one
 * size, with the old time of writing put back, has another status. A file that is not there has -1 four times.
 */
export function statusesOf(root: string, files: readonly string[]): readonly number[] {
  const statuses: number[] = [];
  for (const file of files) {
    const status = statSync(`${root}/${file}`, { throwIfNoEntry: false });
    if (status === undefined) statuses.push(-1, -1, -1, -1);
    else statuses.push(status.size, status.mtimeMs, status.ctimeMs, status.ino);
  }
  return statuses;
}

/** The file `name` of an installation's bundle, as a path: nobody edits its sources. Undefined in a clone. */
export function installedProgram(name: string): string | undefined {
  const file = path.join(import.meta.dirname, "../../../bundle", name);
  return existsSync(file) ? file : undefined;
}

/**
 * The file `name` of the bundle of the clone at `root`, as a path; undefined where its sources have to be run: there is
 * no bundle, a source has changed since, or somebody else could have written it.
 */
export function freshProgram(root: string, name: string): string | undefined {
  const folder = bundleFolder(root);
  try {
    const trusts = trustOf(statSync(`${root}/node_modules`).uid);
    const manifestFile = `${folder}/${manifestName}`;
    if (!trusts(lstatSync(folder), "folder") || !trusts(lstatSync(manifestFile), "file")) return undefined;
    const manifest = JSON.parse(readFileSync(manifestFile, "utf8")) as BundleManifest;
    const bundle = `${folder}/${manifest.folder}`;
    if (manifest.root !== root || !manifest.files.includes(name)) return undefined;
    if (!trusts(lstatSync(bundle), "folder")) return undefined;
    for (const file of manifest.files) {
      if (!trusts(lstatSync(`${bundle}/${file}`), "file")) return undefined;
    }
    const statuses = statusesOf(root, manifest.sources);
    if (!statuses.every((status, index) => status === manifest.statuses[index])) return undefined;
    return `${bundle}/${name}`;
  } catch {
    // Not there, not readable or not whole: the sources are.
    return undefined;
  }
}

/**
 * Whose files are run: one's own, root's and those of the user who owns the clone's dependencies, and only what nobody
 * else may write.
 */
function trustOf(owner: number): (status: Stats, kind: "file" | "folder") => boolean {
  const own = process.getuid?.();
  return (status, kind) =>
    (kind === "file" ? status.isFile() : status.isDirectory()) &&
    (status.uid === 0 || status.uid === own || status.uid === owner) &&
    (status.mode & 0o022) === 0;
}
