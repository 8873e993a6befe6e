// `tulle ca show`: what signs workloads' certificates, and which roots they trust.
import type { Command } from "commander";
import { type AuthorityStatus, endpoints } from "@tulle/config/api";
import type { CommandContext, InstanceOption, OutputOption } from "../../command/command-module.ts";
import { addInstanceOption, addOutputOption } from "../../command/command-options.ts";
import { formatFitting } from "../../printing/format-table.ts";
import { connect, withApiFailures } from "../../instance/instance-client.ts";
import { wrapText } from "../../printing/wrap-text.ts";

export function registerShow(command: Command, context: CommandContext): void {
  addInstanceOption(command);
  addOutputOption(command);
  command.action(async (options: InstanceOption & OutputOption) => {
    const instance = await context.instance(options);
    const status = await withApiFailures(instance, () => connect(instance).call(endpoints.authority, {}));
    await context.printData(status, options.output, () => authorityText(status, context.columns));
  });
}

/** `columns` is the width of the terminal, if there is one. */
export function authorityText(status: AuthorityStatus, columns: number | undefined): string {
  const { trustDomain, signing, roots } = status;
  const row = (role: string, { subject, serial, notAfter }: AuthorityStatus["signing"]) => [
    role,
    subject,
    serial,
    notAfter.slice(0, 10),
  ];
  const table = formatFitting(
    ["ROLE", "SUBJECT", "SERIAL", "VALID UNTIL"],
    [row("signs", signing), ...roots.map((root) => row("trusted", root))],
    { columns, title: 0 },
  );
  return `${wrapText(`Trust domain ${trustDomain}. ${phaseText(status)}`, columns)}\n\n${table}`;
}

function phaseText({ phase, phaseEnds = "", isBroughtAlong }: AuthorityStatus): string {
  switch (phase) {
    case "steady":
      return isBroughtAlong ? "The authority is yours (cacerts)." : "The authority is the mesh's own.";
    case "introducing":
      return `New roots are being made known; the new authority signs from ${phaseEnds}.`;
    case "retiring":
      return `The new authority signs; the old roots are trusted until ${phaseEnds}.`;
  }
}
