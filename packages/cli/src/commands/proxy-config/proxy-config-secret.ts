// `tulle proxy-config secret`: the certificates that a proxy shows and trusts, in Istio's columns.
import type { Command } from "commander";
import type { CommandContext, OutputOption } from "../../command/command-module.ts";
import { addOutputOption } from "../../command/command-options.ts";
import { formatFitting } from "../../printing/format-table.ts";
import { addPodArgument, type PodOptions, proxyAdmin } from "../../proxy-admin/proxy-admin.ts";
import { secretsOf } from "../../proxy-admin/proxy-dump.ts";
import { type SecretRow, secretRows } from "./secret-certificates.ts";

const header = [
  "RESOURCE NAME",
  "TYPE",
  "STATUS",
  "VALID CERT",
  "SERIAL NUMBER",
  "NOT AFTER",
  "NOT BEFORE",
  "TRUST DOMAIN",
];

export function registerSecret(command: Command, context: CommandContext): void {
  addOutputOption(addPodArgument(command));
  command.action(async (name: string, options: PodOptions & OutputOption) => {
    const admin = await proxyAdmin(context, name, options);
    const nowMs = Date.now();
    const rows = (await secretsOf(admin)).flatMap((secret) => secretRows(secret, nowMs));
    await context.printData(rows, options.output, () => secretText(admin.id, rows, context.columns));
  });
}

/** `columns` is the width of the terminal, if there is one. */
export function secretText(id: string, rows: readonly SecretRow[], columns: number | undefined): string {
  if (rows.length === 0) return `${id} has no certificates: it speaks and takes plain text alone.\n`;
  return formatFitting(header, rows.toSorted(byName).map(cells), { columns, gaps: [5, 2], title: 0 });
}

function cells(row: SecretRow): readonly string[] {
  return [
    row.name,
    row.type,
    row.status,
    row.valid === undefined ? "" : String(row.valid),
    row.serialNumber ?? "",
    row.notAfter ?? "",
    row.notBefore ?? "",
    row.trustDomain ?? "",
  ];
}

/** The workload's own first, then its roots, then what gateways hold for others. */
function byName(a: SecretRow, b: SecretRow): number {
  const rank = ({ name }: SecretRow): number => ["default", "ROOTCA"].indexOf(name) >>> 0;
  return rank(a) - rank(b) || (a.name < b.name ? -1 : Number(a.name > b.name));
}
