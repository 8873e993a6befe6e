// `tulle install`: the control plane, and what else the values say, into a cluster.
import type { Command } from "commander";
import type { CommandContext } from "../command/command-module.ts";
import { addExamples } from "../command/command-options.ts";
import { addInstallOptions, type InstallOptions, runInstallation } from "../installing/run-installation.ts";

export function register(command: Command, context: CommandContext): void {
  addInstallOptions(command);
  addExamples(command, [
    ["tulle install -y", "the control plane, into the kubeconfig's cluster"],
    ["tulle install --set gateway.enabled=true", "with a gateway"],
    ["tulle install --revision canary --dry-run", "whether a second one would do"],
  ]);
  command.action((options: InstallOptions) => runInstallation("install", options, context));
}
