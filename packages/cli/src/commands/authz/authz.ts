// `tulle authz`: what AuthorizationPolicies come to in one proxy. One file a sub-command.
import type { Command } from "commander";
import type { CommandContext } from "../../command/command-module.ts";
import { addExamples } from "../../command/command-options.ts";
import { registerCheck } from "./authz-check.ts";

export function register(command: Command, context: CommandContext): void {
  const check = command.command("check").description("The AuthorizationPolicies that a proxy enforces at this moment.");
  registerCheck(check, context);
  addExamples(command, [["tulle authz check catalog-v1", "the policies of one pod; the start of its name will do"]]);
}
