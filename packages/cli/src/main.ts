// The entry of `tulle`: this process's streams and environment become a command context; everything else is in
// run-cli.ts.
import { enableCompileCache, registerHooks } from "node:module";
import { endWithLauncher } from "./end-with-launcher.ts";
import { compileCacheFolder, packagesUrl } from "./command/installation.ts";
import { quickResolve } from "./quick-resolve.ts";

// Before anything else is loaded: compiled code and stripped types of an earlier run halve the start.
enableCompileCache(compileCacheFolder);
registerHooks({ resolve: quickResolve(packagesUrl) });
endWithLauncher();
const [{ processContext }, { runCli }] = await Promise.all([import("./process-context.ts"), import("./run-cli.ts")]);

process.exitCode = await runCli(process.argv.slice(2), processContext());
