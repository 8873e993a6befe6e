// `tulle auth key`: the keys that sign tokens.
import type { Command } from "commander";
import { keyList, rotateKeys } from "@tulle/authorization-server";
import type { KeyListing } from "@tulle/authorization-server";
import { CommandFailure } from "../../command/command-failure.ts";
import type { CommandContext, OutputOption } from "../../command/command-module.ts";
import { addOutputOption } from "../../command/command-options.ts";
import { formatFitting } from "../../printing/format-table.ts";
import type { StoreOptions } from "./auth-store.ts";
import { accepted, addStoreOptions, moment, withStore } from "./auth-store.ts";

type Options = StoreOptions & OutputOption;

function table(keys: readonly KeyListing[], columns: number | undefined): string {
  return formatFitting(
    ["ID", "ALGORITHM", "STATE", "CREATED", "ACTIVE SINCE", "PUBLISHED UNTIL", "REMOVED AFTER"],
    keys.map((key) => [
      key.id,
      key.algorithm,
      key.state,
      moment(key.createdAtMs),
      moment(key.activatedAtMs),
      moment(key.publishedUntilMs),
      moment(key.removedAfterMs),
    ]),
    { columns, title: 0, empty: "no signing keys" },
  );
}

export function registerKey(command: Command, context: CommandContext): void {
  const list = addOutputOption(addStoreOptions(command.command("list").description("list signing keys")));
  list.action(async (options: Options) => {
    const keys = await withStore(context, options, ({ database }) => keyList(database));
    await context.printData(keys, options.output, () => table(keys, context.columns));
  });
  const rotate = command
    .command("rotate")
    .description("sign with the next key from now on (keys also rotate by themselves)")
    .option("--key-encryption-key-file <file>", "the server's, where it was given one");
  addOutputOption(addStoreOptions(rotate));
  rotate.action(async (options: Options) => {
    const rotated = await withStore(context, options, ({ database, config }) =>
      rotateKeys(database, config).catch((error: unknown) => {
        throw new CommandFailure(`cannot rotate: ${(error as Error).message}`, { cause: error });
      }),
    );
    const keys = accepted(rotated);
    await context.printData(keys, options.output, () => table(keys, context.columns));
  });
}
