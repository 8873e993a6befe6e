// `tulle authz check`: the policies that a proxy enforces, read from what it runs with and not from what was applied.
import type { Command } from "commander";
import type { CommandContext, OutputOption } from "../../command/command-module.ts";
import { addOutputOption } from "../../command/command-options.ts";
import { formatFitting } from "../../printing/format-table.ts";
import { addPodArgument, type PodOptions, proxyAdmin } from "../../proxy-admin/proxy-admin.ts";
import { type EnforcedPolicy, enforcedPolicies, policyName } from "../../proxy-admin/enforced-policies.ts";
import { listenersOf } from "../../proxy-admin/proxy-dump.ts";
import { wrapText } from "../../printing/wrap-text.ts";

const header = ["ACTION", "AuthorizationPolicy", "RULES"];

export function registerCheck(command: Command, context: CommandContext): void {
  addOutputOption(addPodArgument(command));
  command.action(async (name: string, options: PodOptions & OutputOption) => {
    const admin = await proxyAdmin(context, name, options);
    const policies = enforcedPolicies(await listenersOf(admin));
    await context.printData(policies, options.output, () => policiesText(admin.id, policies, context.columns));
  });
}

/** `columns` is the width of the terminal, if there is one. */
export function policiesText(id: string, policies: readonly EnforcedPolicy[], columns: number | undefined): string {
  if (policies.length === 0)
    return `${wrapText(`No AuthorizationPolicy holds for ${id}: it answers everyone.`, columns)}\n`;
  const rows = policies.map((policy) => [
    policy.dryRun ? `${policy.action} (dry run)` : policy.action,
    policyName(policy),
    String(policy.rules),
  ]);
  return formatFitting(header, rows, { columns, gaps: [5, 2], title: 1 });
}
