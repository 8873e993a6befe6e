// `tulle proxy-config route`: the route tables of a proxy, in Istio's columns, and with the revision
// that access logs and spans tell of a request.
import type { Command } from "commander";
import type { CommandContext, OutputOption } from "../../command/command-module.ts";
import { addOutputOption } from "../../command/command-options.ts";
import { formatFitting } from "../../printing/format-table.ts";
import { onlyMatching } from "./only-matching.ts";
import { addPodArgument, type PodOptions, proxyAdmin } from "../../proxy-admin/proxy-admin.ts";
import { configName, type RouteDump, type RouteTableDump, routeTablesOf } from "../../proxy-admin/proxy-dump.ts";

const header = ["NAME", "VHOST NAME", "DOMAINS", "MATCH", "VIRTUAL SERVICE", "REVISION"];
const hostColumn = 1;
const matchColumn = 3;

export function registerRoute(command: Command, context: CommandContext): void {
  addOutputOption(addPodArgument(command)).option("--name <route>", "only this route table");
  command.action(async (pod: string, options: PodOptions & OutputOption & { readonly name?: string }) => {
    const admin = await proxyAdmin(context, pod, options);
    const filter = { nameOf: ({ name = "" }: RouteTableDump) => name, what: "route table", id: admin.id };
    const tables = onlyMatching(await routeTablesOf(admin), options.name, filter);
    await context.printData(tables, options.output, () => routeTable(tables, context.columns));
  });
}

export function routeTable(tables: readonly RouteTableDump[], columns: number | undefined): string {
  const rows = tables.flatMap(routeRows);
  const distinct = (column: number): number => new Set(rows.map((row) => row[column])).size;
  // Routes are told apart by their hosts in a sidecar, by what they match in a gateway.
  const title = distinct(hostColumn) < distinct(matchColumn) ? matchColumn : hostColumn;
  return formatFitting(header, rows, { columns, gaps: [5, 2], title });
}

export function routeRows({ name = "", virtual_hosts: hosts = [] }: RouteTableDump): readonly (readonly string[])[] {
  return hosts.flatMap((host) => {
    const [domain = "", ...others] = host.domains ?? [];
    const domains = others.length === 0 ? domain : `${domain}, + ${others.length} more...`;
    const revision = host.metadata?.filter_metadata?.tulle?.revision ?? "";
    return (host.routes ?? []).map((route) => [
      name,
      host.name,
      domains,
      matchText(route),
      configName(route),
      revision,
    ]);
  });
}

function matchText({ match = {} }: RouteDump): string {
  const path =
    match.path ??
    match.safe_regex?.regex ??
    (match.connect_matcher === undefined ? `${match.prefix ?? ""}*` : "CONNECT");
  const headers = (match.headers ?? []).map((each) => each.name);
  return headers.length === 0 ? path : `${path} {${headers.join(", ")}}`;
}
