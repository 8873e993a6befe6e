// Where this installation of Tulle lies: the entry that child processes are started with, and the folder for compiled
// code.
import { existsSync, readFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { pathToFileURL } from "node:url";

export const entryFile = path.join(import.meta.dirname, "../main.ts");

export const repository = path.resolve(import.meta.dirname, "../../../..");

/** The folder of the packages, for the module loader. */
export const packagesUrl = pathToFileURL(`${path.join(repository, "packages")}${path.sep}`).href;

/** What is typed in a clone; undefined for an installed package. */
export function cloneScript(): string | undefined {
  const script = path.join(repository, "tulle");
  return existsSync(script) ? script : undefined;
}

/**
 * Shared by all of Tulle's processes; it can be deleted at any time. An installed package may belong to somebody else.
 */
export const compileCacheFolder = import.meta.dirname.includes(`${path.sep}node_modules${path.sep}`)
  ? path.join(process.env["XDG_CACHE_HOME"] || path.join(os.homedir(), ".cache"), "tulle", "compile")
  : path.join(repository, "node_modules", ".cache", "compile");

/** The version of this clone, from the package that the command is. */
export function tulleVersion(): string {
  const manifest = readFileSync(new URL("../../package.json", import.meta.url), "utf8");
  return (JSON.parse(manifest) as { version: string }).version;
}
