// `tulle auth grant`: what users have allowed applications.
import type { Command } from "commander";
import { grantsOf, revokeGrants } from "@tulle/authorization-server";
import { CommandFailure, exitCodes } from "../../command/command-failure.ts";
import type { CommandContext, OutputOption } from "../../command/command-module.ts";
import { addOutputOption } from "../../command/command-options.ts";
import { formatFitting } from "../../printing/format-table.ts";
import type { StoreOptions } from "./auth-store.ts";
import { accepted, addStoreOptions, moment, withStore } from "./auth-store.ts";

type Options = StoreOptions & OutputOption & { readonly user?: string; readonly client?: string };

export function registerGrant(command: Command, context: CommandContext): void {
  const list = command
    .command("list")
    .description("list grants")
    .option("--user <name>", "only this user's")
    .option("--client <id>", "only this client's");
  addOutputOption(addStoreOptions(list));
  list.action(async (options: Options) => {
    const filter = { userName: options.user, clientId: options.client };
    const grants = accepted(await withStore(context, options, ({ database }) => grantsOf(database, filter)));
    await context.printData(grants, options.output, () =>
      formatFitting(
        ["ID", "USER", "CLIENT", "SCOPE", "SINCE", "UNTIL"],
        grants.map((grant) => [
          grant.id,
          grant.userName,
          grant.clientId,
          grant.scope.join(" "),
          moment(grant.createdAtMs),
          moment(grant.expiresAtMs),
        ]),
        { columns: context.columns, title: 0, empty: "no grants" },
      ),
    );
  });
  const revoke = command
    .command("delete")
    .argument("[id]")
    .description("take back a grant, or all of a user or client; its tokens end with it")
    .option("--user <name>", "all of this user's")
    .option("--client <id>", "all of this client's");
  addStoreOptions(revoke).action(async (id: string | undefined, options: Options) => {
    if (id === undefined && options.user === undefined && options.client === undefined)
      throw new CommandFailure("say which: an id, --user or --client", { exitCode: exitCodes.usage });
    const which = id === undefined ? { userName: options.user, clientId: options.client } : { id };
    const count = accepted(await withStore(context, options, ({ database }) => revokeGrants(database, which)));
    context.stdout(`${count} ${count === 1 ? "grant" : "grants"} taken back\n`);
  });
}
