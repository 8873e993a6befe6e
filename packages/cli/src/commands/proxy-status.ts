// `tulle proxy-status`: whether each proxy holds the newest configuration of each kind, and why not.
import type { Command } from "commander";
import { endpoints, type ProxySync, statusTypes as types } from "@tulle/config/api";
import { choosePod, podArgumentText } from "../arguments/choose-pod.ts";
import type { CommandContext, OutputOption } from "../command/command-module.ts";
import { addExamples, addInstanceOption, addOutputOption } from "../command/command-options.ts";
import { formatFitting } from "../printing/format-table.ts";
import { connect, withApiFailures } from "../instance/instance-client.ts";
import type { PodOptions } from "../proxy-admin/proxy-admin.ts";

const header = ["NAME", "CLUSTER", ...types, "TULLED", "VERSION"];

export function register(command: Command, context: CommandContext): void {
  addInstanceOption(command);
  addOutputOption(command);
  command.argument("[proxy]", `only this one: ${podArgumentText}`);
  command.option("-n, --namespace <namespace>", "only proxies of this namespace");
  addExamples(command, [
    ["tulle proxy-status", "all proxies"],
    ["tulle proxy-status -o json", "with nonces, times and reasons, for a program"],
  ]);
  command.action(async (name: string | undefined, options: PodOptions & OutputOption) => {
    const instance = await context.instance(options);
    const all = await withApiFailures(instance, () => connect(instance).call(endpoints.syncStatus, {}));
    const { namespace } = options;
    const rows =
      name === undefined
        ? all.filter(({ proxy }) => namespace === undefined || namedProxy(proxy).namespace === namespace)
        : [chooseProxy(all, name, namespace, context)];
    await context.printData(rows, options.output, () => statusText(rows, context.columns));
  });
}

function chooseProxy(
  all: readonly ProxySync[],
  text: string,
  namespace: string | undefined,
  context: CommandContext,
): ProxySync {
  const named = all.map((row) => ({ row, ...namedProxy(row.proxy) }));
  return choosePod(named, { text, namespace, what: "connected proxy", heading: "Connected" }, context).row;
}

/** `<pod>.<namespace>`; a namespace has no dot. */
function namedProxy(proxy: string): { readonly name: string; readonly namespace: string } {
  const dot = proxy.lastIndexOf(".");
  return { name: proxy.slice(0, dot), namespace: proxy.slice(dot + 1) };
}

/**
 * The table, and below it who has no certificate, and the reasons of what is refused. `columns` is the width of the
 * terminal, if there is one.
 */
export function statusText(rows: readonly ProxySync[], columns: number | undefined): string {
  if (rows.length === 0) return "No proxies are connected.\n";
  const reasons = rows.flatMap((row) =>
    types.flatMap((type) =>
      row.types[type].errors.map(
        ({ resource, message }) =>
          `${row.proxy} ${type} ERROR ${resource}: ${message.trim().replaceAll("\n", "\n  ")}\n`,
      ),
    ),
  );
  const plain = rows.flatMap(({ proxy, withoutCertificate }) =>
    withoutCertificate === true
      ? [`${proxy} has no certificate: it speaks plain text, and nothing where mutual TLS is asked for\n`]
      : [],
  );
  const notes = [...plain, ...reasons];
  const below = notes.length === 0 ? "" : `\n${notes.join("")}`;
  return layout(rows, columns) + below;
}

/**
 * Istio's five spaces between columns; two where the terminal is narrower, and one proxy a paragraph where even that is
 * too wide.
 */
function layout(rows: readonly ProxySync[], columns: number | undefined): string {
  const cells = rows.map((row) => [
    row.proxy,
    row.cluster_id,
    ...types.map((type) => row.types[type].state),
    row.tulled,
    row.istio_version,
  ]);
  return formatFitting(header, cells, { columns, gaps: [5, 2], title: 0 });
}
