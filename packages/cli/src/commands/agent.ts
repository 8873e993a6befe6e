// `tulle agent`: the process beside a workload. Its settings come from the environment, as the platform sets them.
// `tulle agent wait` holds others back until it is ready.
import { agentVariables } from "@tulle/agent";
import type { Command } from "commander";
import { runAgentProgram } from "../command/run-agent-program.ts";
import type { CommandContext } from "../command/command-module.ts";
import { addExamples } from "../command/command-options.ts";
import { proxyIsReady, wholeSeconds } from "../command/wait-for-proxy.ts";
import { wrapItem } from "../printing/wrap-text.ts";

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
  command.action(() => runAgentProgram(context.env));
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
