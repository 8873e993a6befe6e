// The entry of `tulle`: runs start.ts, out of the bundle while that says what the sources say. An agent has a file of
// its own there.
import { createRequire, enableCompileCache, registerHooks } from "node:module";
import { freshProgram, installedProgram, quickResolve } from "@tulle/loading";
import { compileCacheFolder, packagesUrl, repository } from "./command/installation.ts";

const isAgent = process.argv.length === 3 && process.argv[2] === "agent";
const program = isAgent ? "agent.cjs" : "tulle.mjs";

// Before anything else is loaded: compiled code and stripped types of an earlier run halve the start.
const installed = installedProgram(program);
enableCompileCache({ directory: compileCacheFolder, portable: installed !== undefined });
const bundled = installed ?? freshProgram(repository, program);
if (bundled === undefined) {
  registerHooks({ resolve: quickResolve(packagesUrl) });
  await import("./start.ts");
} else if (isAgent) {
  const load = createRequire(import.meta.url);
  await (load(bundled) as typeof import("./agent-program.ts")).startAgentProgram();
} else {
  await import(bundled);
}
