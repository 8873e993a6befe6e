// `tulle uninstall`: takes a revision's control plane out of a cluster, or all of Tulle.
import type { Command } from "commander";
import { InstallFailure, installedOf, objectText, rootNamespace, uninstallObjects } from "@tulle/kubernetes";
import { CommandFailure, exitCodes } from "../command/command-failure.ts";
import type { ClusterOptions, CommandContext } from "../command/command-module.ts";
import { addClusterOptions, addExamples } from "../command/command-options.ts";
import { confirm } from "../installing/confirm.ts";
import { withCluster } from "../instance/cluster.ts";

interface Options extends ClusterOptions {
  readonly namespace: string;
  readonly revision?: string;
  readonly purge?: boolean;
  readonly yes?: boolean;
  readonly dryRun?: boolean;
}

const timeoutMs = 120_000;

export function register(command: Command, context: CommandContext): void {
  addClusterOptions(command)
    .option("-n, --namespace <namespace>", "namespace that it is installed in", rootNamespace)
    .option("--revision <name>", "the control plane to remove, with its gateways (default: default)")
    .option("--purge", "everything: all revisions, the kinds with all objects of them, and the state")
    .option("-y, --yes", "do not ask")
    .option("--dry-run", "list what would be removed");
  addExamples(command, [
    ["tulle uninstall --revision old", "one of several control planes"],
    ["tulle uninstall --purge -y", "leave nothing behind"],
  ]);
  command.action((options: Options) => uninstall(options, context));
}

async function uninstall(options: Options, context: CommandContext): Promise<void> {
  if (options.purge === true && options.revision !== undefined) {
    throw new CommandFailure("--purge removes all revisions, and --revision names one", { exitCode: exitCodes.usage });
  }
  const { namespace } = options;
  const scope = options.purge === true ? {} : { revision: options.revision ?? "default" };
  await withCluster(options, context, async (client) => {
    const objects = await installedOf({ client, ...scope });
    if (objects.length === 0 && options.purge !== true) {
      throw new CommandFailure(`nothing is installed of the revision ${scope.revision}`, {
        hint: "tulle uninstall --purge removes what is left of Tulle.",
      });
    }
    if (options.dryRun === true) {
      context.stdout(objects.map((object) => `${objectText(object)} would be removed\n`).join(""));
      return;
    }
    const kinds = objects.some(({ kind }) => kind === "CustomResourceDefinition");
    const what = kinds ? "Tulle, and all objects of its kinds," : `the revision ${scope.revision} of Tulle`;
    await confirm(`Remove ${what} from ${client.access.server} (${client.access.origin})?`, options, context);
    const tell = (line: string): void => context.stdout(`${line}\n`);
    await uninstallObjects({ client, namespace, ...scope, timeoutMs, tell }, objects).catch((error: unknown) => {
      if (!(error instanceof InstallFailure)) throw error;
      throw new CommandFailure(error.message, { hint: "The same command goes on from here.", cause: error });
    });
  });
  if (options.dryRun !== true) context.stdout("✔ Removed.\n");
}
