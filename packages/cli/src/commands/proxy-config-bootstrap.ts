// `tulle proxy-config bootstrap`: the document that a proxy was started with.
import type { Command } from "commander";
import type { CommandContext, OutputOption } from "../command-module.ts";
import { addOutputOption } from "../command-options.ts";
import { addPodArgument, type PodOptions, proxyAdmin } from "./proxy-config-admin.ts";
import { bootstrapOf } from "./proxy-config-dump.ts";

export function registerBootstrap(command: Command, context: CommandContext): void {
  addOutputOption(addPodArgument(command));
  command.action(async (name: string, options: PodOptions & OutputOption) => {
    const bootstrap = await bootstrapOf(await proxyAdmin(context, name, options));
    await context.printData(bootstrap, options.output ?? "json", () => "");
  });
}
