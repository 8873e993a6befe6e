// The command line of this process, from its streams and environment to its exit status; everything else is in
// run-cli.ts.
import { endWithLauncher } from "./end-with-launcher.ts";

endWithLauncher();
const [{ processContext }, { runCli }] = await Promise.all([import("./process-context.ts"), import("./run-cli.ts")]);

process.exitCode = await runCli(process.argv.slice(2), processContext());
