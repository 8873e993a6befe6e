// Runs a stage: a program of a test's own that has a network namespace to itself, with all that it makes there, and
// prints what came of it as one line of JSON.
import { debianTool } from "./debian-tool.ts";
import { startProcess } from "./processes.ts";
import { runCommand } from "./run-command.ts";
import { ToolUnavailable } from "./tool-unavailable.ts";

/** What the stage prints; all of it ends with the call. @throws {ToolUnavailable} for who is not root */
export async function playInOwnNetwork<Outcome>(program: string, args: readonly string[]): Promise<Outcome> {
  await debianTool("iproute2");
  await debianTool("nftables");
  if ((await runCommand("unshare", ["--net", "--", "true"])).code !== 0) {
    throw new ToolUnavailable("a network namespace", "it takes root to make one; run this test as root");
  }
  // However this process ends, all that the stage has started ends: with its first process, which ends with its parent.
  const alone = ["unshare", "--net", "--pid", "--fork", "--kill-child", "--mount-proc", "--"];
  const command = ["--pdeathsig", "KILL", "--", ...alone, process.execPath, program, ...args];
  await using stage = await startProcess("setpriv", command, { name: `the stage ${program}`, group: true });
  const [line] = await stage.waitForOutput(/^\{.*\}$/m, { timeoutMs: 300_000 });
  await stage.exited;
  return JSON.parse(line) as Outcome;
}
