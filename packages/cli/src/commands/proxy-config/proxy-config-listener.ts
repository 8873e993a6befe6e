// `tulle proxy-config listener`: the listeners of a proxy, in Istio's columns.
import type { Command } from "commander";
import type { CommandContext, OutputOption } from "../../command/command-module.ts";
import { addOutputOption } from "../../command/command-options.ts";
import { formatFitting } from "../../printing/format-table.ts";
import { addPodArgument, type PodOptions, proxyAdmin } from "../../proxy-admin/proxy-admin.ts";
import { addressText, type FilterChainDump, type ListenerDump, listenersOf } from "../../proxy-admin/proxy-dump.ts";

const header = ["ADDRESSES", "PORT", "MATCH", "DESTINATION"];

export function registerListener(command: Command, context: CommandContext): void {
  addOutputOption(addPodArgument(command));
  command.action(async (name: string, options: PodOptions & OutputOption) => {
    const listeners = await listenersOf(await proxyAdmin(context, name, options));
    await context.printData(listeners, options.output, () =>
      formatFitting(header, listeners.flatMap(listenerRows), { columns: context.columns, gaps: [5, 2], title: 0 }),
    );
  });
}

export function listenerRows(listener: ListenerDump): readonly (readonly string[])[] {
  const first = addressText(listener.address);
  const others = (listener.additional_addresses ?? []).map(({ address }) => addressText(address));
  const hosts = [first.host, ...others.map(({ host, port }) => (port === first.port ? host : `${host}:${port}`))];
  const chains = listener.filter_chains ?? [];
  return chains.map((chain) => [hosts.join(","), first.port, matchText(chain), destinationText(chain)]);
}

function matchText({ filter_chain_match: match }: FilterChainDump): string {
  const parts = [
    match?.server_names === undefined ? "" : `SNI: ${match.server_names.join(",")}`,
    match?.transport_protocol === undefined ? "" : `Trans: ${match.transport_protocol}`,
    match?.application_protocols === undefined ? "" : `App: ${match.application_protocols.join(",")}`,
  ].filter((part) => part !== "");
  return parts.length === 0 ? "ALL" : parts.join("; ");
}

function destinationText({ filters = [] }: FilterChainDump): string {
  const config = filters.at(-1)?.typed_config;
  if (config?.rds !== undefined) return `Route: ${config.rds.route_config_name}`;
  if (config?.route_config !== undefined) return `Inline Route: ${config.route_config.name ?? ""}`;
  return config?.cluster === undefined ? (filters.at(-1)?.name ?? "-") : `Cluster: ${config.cluster}`;
}
