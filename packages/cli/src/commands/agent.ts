// `tulle agent`: the process beside a workload. Its settings come from the environment, as the platform sets them.
// `tulle agent wait` holds others back until it is ready.
import { flushCompileCache } from "node:module";
import { agentVariables, runAgent } from "@tulle/agent";
import type { Command } from "commander";
import type { CommandContext } from "../command/command-module.ts";
import { addExamples } from "../command/command-options.ts";
import { proxyIsReady, wholeSeconds } from "../command/wait-for-proxy.ts";
import { wrapItem } from "../printing/wrap-text.ts";

const flushAfterMs = 5000;

export function register(command: Command, context: CommandContext): void {
  const width = Math.max(...agentVariables.map(({ name }) => name.length));
  const columns = context.isTerminal ? context.columns : undefined;
  const lines = agentVariables.map((variable) => {
    const fallback = "fallback" in variable && variable.fallback !== "" ? ` (default: ${variable.fallback})` : "";
    return wrapItem(variable.name, width, `${variable.meaning}${fallback}`, columns);
  });
  command.addHelpText("after", `\nEnvironment:\n${lines.join("\n")}`);
  registerWait(command.command("wait"), context);
  addExamples(command, [["tulle logs <pod> -c proxy", "what the agent of a running pod wrote"]]);
  command.action(async () => {
    // Node keeps compiled code when a process ends well; an agent mostly runs until the machine is shut down.
    setTimeout(flushCompileCache, flushAfterMs).unref();
    // Of a machine: who has started it holds the other end, and an agent without him would stay in the way of the next.
    if (context.env["TULLE_MACHINE"] === "yes") process.stdin.once("end", () => process.exit(1)).resume();
    const code = await runAgent(context.env);
    // A part that did not end must not keep an agent alive that has: its supervisor waits for the end to start the next
    // one.
    process.exit(code);
  });
}

const defaultWaitSeconds = 60;

function registerWait(command: Command, { env }: CommandContext): void {
  command
    .description("Wait until the agent of this pod is ready: a container's postStart hook.")
    .option("--timeout <seconds>", "give up, and fail, after so long", wholeSeconds, defaultWaitSeconds)
    .action(async ({ timeout }: { readonly timeout: number }) => {
      const hasOwnNetwork = (env["ISTIO_META_INTERCEPTION_MODE"] ?? "REDIRECT") !== "NONE";
      const address = hasOwnNetwork ? "127.0.0.1" : (env["INSTANCE_IP"] ?? "127.0.0.1");
      await proxyIsReady(timeout, address);
    });
}
