// Where this installation of Tulle lies: the entry that child processes are started with, and the folder for compiled code.
import path from "node:path";
import { pathToFileURL } from "node:url";

export const entryFile = path.join(import.meta.dirname, "main.ts");

const repository = path.resolve(import.meta.dirname, "../../..");

/** The folder of the packages, for the module loader. */
export const packagesUrl = pathToFileURL(`${path.join(repository, "packages")}${path.sep}`).href;

/** Shared by all of Tulle's processes; it can be deleted at any time. */
export const compileCacheFolder = path.join(repository, "node_modules", ".cache", "compile");
