// `tulle agent`: the process beside a workload. Its settings come from the environment, as the platform sets them.
import type { Command } from "commander";
import type { CommandContext } from "../command-module.ts";
import { addExamples } from "../command-options.ts";

export function register(command: Command, context: CommandContext): void {
  addExamples(command, [["tulle logs <pod> -c proxy", "what the agent of a running pod wrote"]]);
  command.action(async () => {
    const { runAgent } = await import("@tulle/agent");
    await runAgent(context.env);
  });
}
