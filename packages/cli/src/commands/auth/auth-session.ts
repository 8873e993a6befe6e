// `tulle auth session`: where users are signed in.
import type { Command } from "commander";
import { describeBrowser, endUserSessions, sessionsOf } from "@tulle/authorization-server";
import type { CommandContext, OutputOption } from "../../command/command-module.ts";
import { addOutputOption } from "../../command/command-options.ts";
import { formatFitting } from "../../printing/format-table.ts";
import type { StoreOptions } from "./auth-store.ts";
import { accepted, addStoreOptions, moment, withStore } from "./auth-store.ts";

type Options = StoreOptions & OutputOption & { readonly user?: string };

export function registerSession(command: Command, context: CommandContext): void {
  const list = command.command("list").description("list sessions").option("--user <name>", "only this user's");
  addOutputOption(addStoreOptions(list));
  list.action(async (options: Options) => {
    const sessions = accepted(await withStore(context, options, ({ database }) => sessionsOf(database, options.user)));
    await context.printData(sessions, options.output, () =>
      formatFitting(
        ["ID", "USER", "SINCE", "LAST USED", "UNTIL", "ADDRESS", "BROWSER"],
        sessions.map((session) => [
          session.id,
          session.userName,
          moment(session.authenticatedAtMs),
          moment(session.seenAtMs),
          moment(session.expiresAtMs),
          session.address,
          describeBrowser(session.userAgent) ?? session.userAgent.slice(0, 40),
        ]),
        { columns: context.columns, title: 0, empty: "no sessions" },
      ),
    );
  });
  const end = command
    .command("delete")
    .argument("<user>")
    .argument("[id]", "one session; without it all of the user's")
    .description("sign a user out");
  addStoreOptions(end).action(async (user: string, id: string | undefined, options: Options) => {
    const count = accepted(await withStore(context, options, ({ database }) => endUserSessions(database, user, id)));
    context.stdout(`${count} ${count === 1 ? "session" : "sessions"} ended\n`);
  });
}
