// The process beside a workload. A bundle holds it in a file of its own (tools/bundle-programs.ts), which the entry
// (main.ts) starts in the place of the command line: there are as many of these processes as pods.
import { stackInSources } from "@tulle/loading/stack-in-sources";
import { runAgentProgram } from "./command/run-agent-program.ts";
import { endWithLauncher } from "./end-with-launcher.ts";
import { endWithReader } from "./end-with-reader.ts";

/** Ends the process. */
export async function startAgentProgram(): Promise<void> {
  process.on("uncaughtException", (error: unknown) => {
    const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
    process.stderr.write(`${stackInSources(text)}\n`);
    process.exit(1);
  });
  endWithLauncher();
  endWithReader();
  await runAgentProgram(process.env);
}
