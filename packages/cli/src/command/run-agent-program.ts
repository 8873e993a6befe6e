// What `tulle agent` runs, from the environment to the exit status.
import { flushCompileCache } from "node:module";
import { runAgent } from "@tulle/agent";

const flushAfterMs = 5000;

/** Ends the process. */
export async function runAgentProgram(env: Readonly<Record<string, string | undefined>>): Promise<void> {
  // Node keeps compiled code when a process ends well; an agent mostly runs until the machine is shut down.
  setTimeout(flushCompileCache, flushAfterMs).unref();
  // Of a machine: who has started it holds the other end, and an agent without him would stay in the way of the next.
  if (env["TULLE_MACHINE"] === "yes") process.stdin.once("end", () => process.exit(1)).resume();
  const code = await runAgent(env);
  // A part that did not end must not keep an agent alive that has: its supervisor waits for the end to start the next
  // one.
  process.exit(code);
}
