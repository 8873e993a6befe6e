// `tulle proxy-config bootstrap`: the document that a proxy was started with.
import type { Command } from "commander";
import type { CommandContext, OutputOption } from "../../command/command-module.ts";
import { addOutputOption } from "../../command/command-options.ts";
import { addPodArgument, type PodOptions, proxyAdmin } from "../../proxy-admin/proxy-admin.ts";
import { bootstrapOf } from "../../proxy-admin/proxy-dump.ts";

export function registerBootstrap(command: Command, context: CommandContext): void {
  addOutputOption(addPodArgument(command));
  command.action(async (name: string, options: PodOptions & OutputOption) => {
    const bootstrap = await bootstrapOf(await proxyAdmin(context, name, options));
    await context.printData(bootstrap, options.output ?? "json", () => "");
  });
}
