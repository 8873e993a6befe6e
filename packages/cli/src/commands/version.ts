// `tulle version`: what runs here, for bug reports and scripts.
import type { Command } from "commander";
import type { CommandContext, OutputOption } from "../command/command-module.ts";
import { addExamples, addOutputOption } from "../command/command-options.ts";
import { tulleVersion } from "../command/installation.ts";

export function register(command: Command, context: CommandContext): void {
  addOutputOption(command);
  addExamples(command, [["tulle version -o json", "version, Node and platform, for a program"]]);
  command.action(async (options: OutputOption) => {
    const data = {
      version: tulleVersion(),
      node: process.versions.node,
      platform: `${process.platform}-${process.arch}`,
    };
    await context.printData(
      data,
      options.output,
      () => `tulle ${data.version} (node ${data.node}, ${data.platform})\n`,
    );
  });
}
