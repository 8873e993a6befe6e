// `tulle vm revoke` and `tulle vm remove`: what was given to a machine is taken back.
import type { Command } from "commander";
import { endpoints, type MachinesResponse } from "@tulle/config/api";
import type { ApiClient } from "@tulle/config";
import { CommandFailure, exitCodes } from "../../command/command-failure.ts";
import type { CommandContext, InstanceOption } from "../../command/command-module.ts";
import { addInstanceOption } from "../../command/command-options.ts";
import { connect, withApiFailures } from "../../instance/instance-client.ts";

type Ask = (api: ApiClient, name: string) => Promise<MachinesResponse>;

function registerAsking(command: Command, context: CommandContext, ask: Ask, done: string): void {
  addInstanceOption(command);
  command.action(async (name: string, options: InstanceOption) => {
    const instance = await context.instance(options);
    await withApiFailures(instance, () => ask(connect(instance), name));
    context.stdout(`${name} ${done}\n`);
  });
}

export function registerRevoke(command: Command, context: CommandContext): void {
  command.argument("<token-id>", "as tulle vm list shows it");
  registerAsking(command, context, (api, id) => api.call(endpoints.revokeToken, { id }), "revoked");
}

export function registerRemove(command: Command, context: CommandContext): void {
  command.argument("<machine.namespace>", "as tulle vm list shows it");
  const remove: Ask = (api, text) => {
    const dot = text.lastIndexOf(".");
    if (dot < 0) {
      const hint = "Name it as tulle vm list does.";
      throw new CommandFailure(`${text} names no namespace`, { hint, exitCode: exitCodes.usage });
    }
    const key = { namespace: text.slice(dot + 1), name: text.slice(0, dot) };
    return api.call(endpoints.removeMachine, key);
  };
  registerAsking(command, context, remove, "removed");
}
