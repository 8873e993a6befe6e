// `tulle tag`: names for revisions, which namespaces are labelled with so that an upgrade need not touch them.
import type { Command } from "commander";
import { listTags, removeTag, setTag, TagFailure } from "@tulle/kubernetes";
import { CommandFailure } from "../../command/command-failure.ts";
import type { ClusterOptions, CommandContext, OutputOption } from "../../command/command-module.ts";
import { addClusterOptions, addExamples, addOutputOption } from "../../command/command-options.ts";
import { withCluster } from "../../instance/cluster.ts";
import {
  addValuesOptions,
  installationOf,
  namespaceOf,
  revisionOf,
  type ValuesOptions,
} from "../../installing/installation-options.ts";
import { formatFitting } from "../../printing/format-table.ts";

export function register(command: Command, context: CommandContext): void {
  registerSet(command, context);
  const list = command.command("list").description("Which tags there are, their revisions, and who uses them.");
  addOutputOption(addClusterOptions(list));
  list.action(async (options: ClusterOptions & OutputOption) => {
    const tags = await withCluster(options, context, listTags);
    await context.printData(tags, options.output, () =>
      tags.length === 0
        ? "No tags.\n"
        : formatFitting(
            ["TAG", "REVISION", "NAMESPACES"],
            tags.map(({ tag, revision, namespaces }) => [tag, revision, namespaces.join(",") || "-"]),
            { columns: context.columns, title: 0 },
          ),
    );
  });
  const remove = command.command("remove").description("Remove a tag; its namespaces are injected no more.");
  addClusterOptions(remove).argument("<tag>", "its name");
  remove.action(async (tag: string, options: ClusterOptions) => {
    const wasThere = await withCluster(options, context, (client) => removeTag(client, tag));
    if (!wasThere) throw new CommandFailure(`there is no tag ${tag}`);
    context.stdout(`tag ${tag} removed\n`);
  });
}

function registerSet(command: Command, context: CommandContext): void {
  const set = command
    .command("set")
    .description("Let a tag mean a revision; namespaces with it follow as pods are made.");
  addClusterOptions(addValuesOptions(set)).argument("<tag>", "its name; default is what namespaces without one mean");
  addExamples(set, [["tulle tag set prod --revision canary", "lead namespaces with tulle.io/rev=prod to canary"]]);
  set.action(async (tag: string, options: ValuesOptions & ClusterOptions) => {
    const { values } = await installationOf(options, context);
    const [namespace, revision] = [namespaceOf(options), revisionOf(options)];
    await withCluster(options, context, (client) => setTag(client, { tag, revision, namespace, values })).catch(
      (error: unknown) => {
        if (!(error instanceof TagFailure)) throw error;
        throw new CommandFailure(error.message, { cause: error });
      },
    );
    context.stdout(`tag ${tag} means the revision ${revision}\n`);
  });
}
