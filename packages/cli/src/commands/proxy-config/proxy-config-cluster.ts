// `tulle proxy-config cluster`: the clusters of a proxy, in Istio's columns.
import type { Command } from "commander";
import type { CommandContext, OutputOption } from "../../command/command-module.ts";
import { addOutputOption } from "../../command/command-options.ts";
import { formatFitting } from "../../printing/format-table.ts";
import { onlyMatching } from "./only-matching.ts";
import { addPodArgument, type PodOptions, proxyAdmin } from "../../proxy-admin/proxy-admin.ts";
import { type ClusterDump, clustersOf, configName } from "../../proxy-admin/proxy-dump.ts";

const header = ["SERVICE FQDN", "PORT", "SUBSET", "DIRECTION", "TYPE", "DESTINATION RULE"];

export function registerCluster(command: Command, context: CommandContext): void {
  addOutputOption(addPodArgument(command)).option("--fqdn <host>", "only clusters of this Service");
  command.action(async (name: string, options: PodOptions & OutputOption & { readonly fqdn?: string }) => {
    const admin = await proxyAdmin(context, name, options);
    const nameOf = (cluster: ClusterDump): string => cluster.name.split("|")[3] ?? "";
    const filter = { nameOf, what: "cluster of", id: admin.id };
    const clusters = onlyMatching(await clustersOf(admin), options.fqdn, filter);
    await context.printData(clusters, options.output, () =>
      formatFitting(header, clusters.map(clusterRow).sort(byCells), {
        columns: context.columns,
        gaps: [5, 2],
        title: 0,
      }),
    );
  });
}

/** Istio's names hold it all: `outbound|80|v1|host`. */
export function clusterRow(cluster: ClusterDump): readonly string[] {
  const type = cluster.cluster_type?.name.replace(/^envoy\.clusters\./, "") ?? cluster.type ?? "STATIC";
  const parts = cluster.name.split("|");
  if (parts.length !== 4) return [cluster.name, "-", "-", "-", type, configName(cluster)];
  const [direction = "", port = "", subset = "", host = ""] = parts;
  return [host || "-", port, subset || "-", direction, type, configName(cluster)];
}

function byCells(a: readonly string[], b: readonly string[]): number {
  return a.join("\0") < b.join("\0") ? -1 : 1;
}
