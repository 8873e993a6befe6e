// `tulle upgrade`: brings what is installed in a cluster to this version, or to other values.
import type { Command } from "commander";
import type { CommandContext } from "../command/command-module.ts";
import { addExamples } from "../command/command-options.ts";
import { addInstallOptions, type InstallOptions, runInstallation } from "../installing/run-installation.ts";

export function register(command: Command, context: CommandContext): void {
  addInstallOptions(command);
  addExamples(command, [["tulle upgrade -f values.yaml -y", "with the values of the installation"]]);
  command.action((options: InstallOptions) => runInstallation("upgrade", options, context));
}
