// `tulle version`: what runs here, for bug reports and scripts.
import { readFileSync } from "node:fs";
import type { Command } from "commander";
import type { CommandContext, OutputOption } from "../command-module.ts";
import { addExamples, addOutputOption } from "../command-options.ts";

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

/** The version of this clone, from the package that the command is. */
export function tulleVersion(): string {
  const manifest = readFileSync(new URL("../../package.json", import.meta.url), "utf8");
  return (JSON.parse(manifest) as { version: string }).version;
}
