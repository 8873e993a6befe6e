// The entry of `tulle`: this process's streams and environment become a command context; everything else is in run-cli.ts.
import { processContext } from "./process-context.ts";
import { runCli } from "./run-cli.ts";

process.exitCode = await runCli(process.argv.slice(2), processContext());
