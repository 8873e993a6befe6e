// `tulle precheck`: what in a cluster would stand in the way of an installation.
import type { Command } from "commander";
import { precheck } from "@tulle/kubernetes";
import { CommandFailure } from "../command/command-failure.ts";
import type { ClusterOptions, CommandContext, OutputOption } from "../command/command-module.ts";
import { addClusterOptions, addExamples, addOutputOption } from "../command/command-options.ts";
import { resultsText } from "../installing/check-results.ts";
import {
  addValuesOptions,
  installationOf,
  namespaceOf,
  type ValuesOptions,
} from "../installing/installation-options.ts";
import { countsIstioLabels } from "../installing/run-installation.ts";
import { withCluster } from "../instance/cluster.ts";

type Options = ValuesOptions & ClusterOptions & OutputOption;

export function register(command: Command, context: CommandContext): void {
  addOutputOption(addClusterOptions(addValuesOptions(command)));
  addExamples(command, [["tulle precheck --set gateway.enabled=true", "for an installation with these values"]]);
  command.action(async (options: Options) => {
    const { objects, values } = await installationOf(options, context);
    const results = await withCluster(options, context, (client) =>
      precheck({ client, namespace: namespaceOf(options), objects, withIstioLabels: countsIstioLabels(values) }),
    );
    await context.printData(results, options.output, () => resultsText(results, context.columns));
    if (results.some(({ outcome }) => outcome === "error"))
      throw new CommandFailure("the cluster is not ready for Tulle");
  });
}
