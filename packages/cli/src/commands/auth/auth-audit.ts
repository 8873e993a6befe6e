// `tulle auth audit`: why something was refused, and what was changed.
import { listAuditEvents } from "@tulle/authorization-server";
import type { Command } from "commander";
import { CommandFailure } from "../../command/command-failure.ts";
import type { CommandContext, OutputOption } from "../../command/command-module.ts";
import { addExamples, addOutputOption, wholeNumber } from "../../command/command-options.ts";
import { formatFitting } from "../../printing/format-table.ts";
import type { StoreOptions } from "./auth-store.ts";
import { addStoreOptions, moment, withStore } from "./auth-store.ts";

type Options = StoreOptions & OutputOption & { readonly limit: number };

export function registerAudit(command: Command, context: CommandContext): void {
  command.argument("[error-id]", "the error id that a client or a person saw");
  command.option("--limit <count>", "how many events, newest first", wholeNumber(1, 10_000), 50);
  addOutputOption(addStoreOptions(command));
  addExamples(command, [["tulle auth audit 7q3kz0a9vd", "why a client saw this error"]]);
  command.action(async (errorId: string | undefined, options: Options) => {
    const filter = { limit: options.limit, ...(errorId === undefined ? {} : { errorId }) };
    const events = await withStore(context, options, ({ database }) =>
      database.read((reader) => listAuditEvents(reader, filter)),
    );
    if (errorId !== undefined && events.length === 0)
      throw new CommandFailure(`nothing is known of the error id ${errorId}`, {
        hint: "It is kept for audit-lifetime (90 days by default), in the store of the server that gave it: name that with --data-dir or --database.",
      });
    const shown = events.map(({ atMs, lastAtMs, ...event }) => ({
      at: new Date(atMs).toISOString(),
      lastAt: new Date(lastAtMs).toISOString(),
      ...event,
    }));
    await context.printData(shown, options.output, () =>
      formatFitting(
        ["TIME", "EVENT", "CLIENT", "USER", "ADDRESS", "ERROR", "REASON"],
        events.map((event) => [
          moment(event.atMs),
          event.count > 1 ? `${event.event} ×${event.count}` : event.event,
          event.clientId ?? "-",
          event.userId ?? "-",
          event.address ?? "-",
          event.error ?? "-",
          event.reason ?? event.description ?? "-",
        ]),
        { columns: context.columns, title: 0, empty: "no events" },
      ),
    );
  });
}
