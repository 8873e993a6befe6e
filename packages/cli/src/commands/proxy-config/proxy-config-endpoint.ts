// `tulle proxy-config endpoint`: the addresses behind the clusters of a proxy, in Istio's columns.
import type { Command } from "commander";
import type { CommandContext, OutputOption } from "../../command/command-module.ts";
import { addOutputOption } from "../../command/command-options.ts";
import { formatFitting } from "../../printing/format-table.ts";
import { onlyMatching } from "./only-matching.ts";
import { addPodArgument, type PodOptions, proxyAdmin } from "../../proxy-admin/proxy-admin.ts";
import { addressText, type ClusterStatusDump, clusterStatusesOf } from "../../proxy-admin/proxy-dump.ts";

const header = ["ENDPOINT", "STATUS", "OUTLIER CHECK", "CLUSTER"];

export function registerEndpoint(command: Command, context: CommandContext): void {
  addOutputOption(addPodArgument(command)).option("--cluster <name>", "only this cluster");
  command.action(async (name: string, options: PodOptions & OutputOption & { readonly cluster?: string }) => {
    const admin = await proxyAdmin(context, name, options);
    const filter = { nameOf: (status: ClusterStatusDump) => status.name, what: "cluster", id: admin.id };
    const statuses = onlyMatching(await clusterStatusesOf(admin), options.cluster, filter);
    await context.printData(statuses, options.output, () =>
      formatFitting(header, statuses.flatMap(endpointRows), { columns: context.columns, gaps: [5, 2], title: 3 }),
    );
  });
}

export function endpointRows({ name, host_statuses: hosts = [] }: ClusterStatusDump): readonly (readonly string[])[] {
  return hosts.map(({ address, health_status: health }) => {
    const { host, port } = addressText(address);
    const outlier = health?.failed_outlier_check === true ? "FAILED" : "OK";
    return [port === "-" ? host : `${host}:${port}`, health?.eds_health_status ?? "HEALTHY", outlier, name];
  });
}
