// `tulle pods`: what runs, where its proxy listens and where its app.
import type { Command } from "commander";
import type { CommandContext, InstanceOption, NamespaceOption, OutputOption } from "../command/command-module.ts";
import { addExamples, addInstanceOption, addOutputOption } from "../command/command-options.ts";
import { connect, withApiFailures } from "../instance/instance-client.ts";
import { formatFitting } from "../printing/format-table.ts";
import { type PodRow, podRow } from "../printing/pod-row.ts";
import { wrapText } from "../printing/wrap-text.ts";

export function register(command: Command, context: CommandContext): void {
  addInstanceOption(command);
  addOutputOption(command);
  command.option("-n, --namespace <namespace>", "only this namespace");
  addExamples(command, [
    ["tulle pods", "a table"],
    ["tulle pods -n shop -o json", "names, labels and addresses, for a program"],
  ]);
  command.action(async (options: InstanceOption & NamespaceOption & OutputOption) => {
    const instance = await context.instance(options);
    const client = connect(instance);
    const { items } = await withApiFailures(instance, () => client.list("Pod", options.namespace));
    const rows = items.map(podRow).sort((a, b) => (`${a.namespace}/${a.name}` < `${b.namespace}/${b.name}` ? -1 : 1));
    await context.printData(rows, options.output, () =>
      rows.length === 0 ? "No pods.\n" : table(rows, context.columns),
    );
  });
}

function table(rows: readonly PodRow[], columns: number | undefined): string {
  const text = formatFitting(
    ["NAMESPACE", "NAME", "READY", "RESTARTS", "ADDRESS", "APP"],
    rows.map((row) => [
      row.namespace,
      row.name,
      row.ready ? "yes" : "no",
      String(row.restarts),
      row.address,
      row.app === null ? "-" : row.app.address + (row.app.port === null ? "" : `:${row.app.port}`),
    ]),
    { columns, title: 1 },
  );
  const notes = rows
    .filter((row) => row.message !== undefined)
    .map((row) => `${wrapText(`${row.name}: ${row.message}`, columns, "  ")}\n`);
  return text + notes.join("");
}
