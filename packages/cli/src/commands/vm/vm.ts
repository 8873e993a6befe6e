// `tulle vm`: machines that are no pods, at the control plane's side. One file a sub-command.
import type { Command } from "commander";
import type { CommandContext } from "../../command/command-module.ts";
import { addExamples } from "../../command/command-options.ts";
import { registerAudit } from "./vm-audit.ts";
import { registerList } from "./vm-list.ts";
import { registerRemove, registerRevoke } from "./vm-remove.ts";
import { registerToken } from "./vm-token.ts";

export function register(command: Command, context: CommandContext): void {
  const add = (name: string, summary: string): Command => command.command(name).description(summary);
  registerToken(add("token", "Make a token by which one machine joins a WorkloadGroup, once."), context);
  registerList(add("list", "Which machines have joined, and which tokens there are."), context);
  registerRevoke(add("revoke", "Make a token worthless that nobody has used."), context);
  registerRemove(add("remove", "Remove a machine: its certificate is worth nothing from then on."), context);
  registerAudit(add("audit", "What came of tokens and of tries to join."), context);
  addExamples(command, [
    ["tulle vm token --group ledger.shop", "a token for one machine, for an hour"],
    ["tulle vm list", "which machines have joined"],
  ]);
}
