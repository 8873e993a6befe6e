// The entry of `tulle`: runs start.ts, out of the bundle while that says what the sources say.
import { enableCompileCache, registerHooks } from "node:module";
import { freshProgram, installedProgram, quickResolve } from "@tulle/loading";
import { compileCacheFolder, packagesUrl, repository } from "./command/installation.ts";

// Before anything else is loaded: compiled code and stripped types of an earlier run halve the start.
const installed = installedProgram("tulle");
enableCompileCache({ directory: compileCacheFolder, portable: installed !== undefined });
const bundled = installed ?? freshProgram(repository, "tulle");
if (bundled === undefined) {
  registerHooks({ resolve: quickResolve(packagesUrl) });
  await import("./start.ts");
} else {
  await import(bundled);
}
