// `tulle vm list`: the machines that have joined, and the tokens that were made.
import type { Command } from "commander";
import { endpoints, type MachinesResponse } from "@tulle/config/api";
import type { CommandContext, InstanceOption, OutputOption } from "../../command/command-module.ts";
import { addInstanceOption, addOutputOption } from "../../command/command-options.ts";
import { connect, withApiFailures } from "../../instance/instance-client.ts";
import { formatFitting } from "../../printing/format-table.ts";

export function registerList(command: Command, context: CommandContext): void {
  addInstanceOption(command);
  addOutputOption(command);
  command.action(async (options: InstanceOption & OutputOption) => {
    const instance = await context.instance(options);
    const found = await withApiFailures(instance, () => connect(instance).call(endpoints.machines, {}));
    await context.printData(found, options.output, () => machinesText(found, context.columns));
  });
}

/** `columns` is the width of the terminal, if there is one. */
export function machinesText({ machines, tokens }: MachinesResponse, columns: number | undefined): string {
  const rows = machines.map((each) => [
    `${each.name}.${each.namespace}`,
    each.group,
    each.address,
    each.state,
    each.entry || "<none>",
    each.hostname,
  ]);
  const header = ["MACHINE", "GROUP", "ADDRESS", "STATE", "WORKLOADENTRY", "HOSTNAME"];
  const joined = rows.length === 0 ? "No machine has joined.\n" : formatFitting(header, rows, { columns, title: 0 });
  if (tokens.length === 0) return joined;
  const tokenRows = tokens.map(({ id, group, namespace, state, until, machine = "" }) => [
    id,
    `${group}.${namespace}`,
    state,
    until,
    machine,
  ]);
  const made = formatFitting(["TOKEN", "GROUP", "STATE", "UNTIL", "USED BY"], tokenRows, { columns, title: 0 });
  return `${joined}\n${made}`;
}
