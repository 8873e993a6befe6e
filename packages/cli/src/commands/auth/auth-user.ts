// `tulle auth user`: the people who sign in.
import type { Command } from "commander";
import {
  allUsers,
  changeUserPassword,
  createUser,
  passwordHasher,
  removeUser,
  updateUserSettings,
} from "@tulle/authorization-server";
import type { Config, User } from "@tulle/authorization-server";
import { CommandFailure, exitCodes } from "../../command/command-failure.ts";
import type { CommandContext, OutputOption } from "../../command/command-module.ts";
import { addExamples, addOutputOption } from "../../command/command-options.ts";
import { formatFitting } from "../../printing/format-table.ts";
import type { StoreOptions } from "./auth-store.ts";
import { accepted, addStoreOptions, collect, moment, secretFromStdin, withStore } from "./auth-store.ts";

type Options = StoreOptions &
  OutputOption & {
    readonly passwordStdin?: boolean;
    readonly displayName?: string;
    readonly email?: string;
    readonly emailVerified?: boolean;
    readonly role?: readonly string[];
    readonly group?: readonly string[];
    readonly claim?: readonly string[];
    readonly disable?: boolean;
    readonly enable?: boolean;
  };

function shown(user: User): Readonly<Record<string, unknown>> {
  const { passwordHash: _, createdAtMs, disabledAtMs, ...rest } = user;
  return { ...rest, createdAt: new Date(createdAtMs).toISOString(), disabled: disabledAtMs !== undefined };
}

/** What applications are told beside name and address: each by the scope of its name. */
function addClaimOptions(command: Command): Command {
  return command
    .option("--email-verified", "the address is known to be the user's")
    .option("--role <name>", "for the scope roles; may be repeated, and replaces those before", collect)
    .option("--group <name>", "for the scope groups; may be repeated, and replaces those before", collect)
    .option(
      "--claim <name=value>",
      "for the scope of that name; repeated it is a list, without a value it goes",
      collect,
    );
}

function claimsOf({ role, group, claim }: Options): Readonly<Record<string, unknown>> {
  const claims = new Map<string, readonly string[]>();
  for (const text of claim ?? []) {
    const equals = text.indexOf("=");
    if (equals < 1) throw new CommandFailure(`--claim ${text} is not NAME=VALUE`, { exitCode: exitCodes.usage });
    const [name, value] = [text.slice(0, equals), text.slice(equals + 1)];
    claims.set(name, [...(claims.get(name) ?? []), ...(value === "" ? [] : [value])]);
  }
  const single = [...claims].map(([name, values]) => [name, values.length === 1 ? values[0] : values] as const);
  // An empty name, as in --role "", says that there is none any more.
  const listOf = (names: readonly string[]): readonly string[] => names.filter((name) => name !== "");
  return {
    ...Object.fromEntries(single),
    ...(role === undefined ? {} : { roles: listOf(role) }),
    ...(group === undefined ? {} : { groups: listOf(group) }),
  };
}

function hasher(config: Config): ReturnType<typeof passwordHasher> {
  return passwordHasher({
    memoryKib: config.passwordMemoryKib,
    iterations: config.passwordIterations,
    parallelism: 1,
  });
}

async function password(context: CommandContext, options: Options): Promise<string> {
  if (options.passwordStdin !== true)
    throw new CommandFailure("give the password on standard input, with --password-stdin", {
      exitCode: exitCodes.usage,
      hint: "A password on the command line would stay in the shell's history.",
    });
  return secretFromStdin(context, "password");
}

export function registerUser(command: Command, context: CommandContext): void {
  const create = addOutputOption(
    addStoreOptions(
      addClaimOptions(
        command
          .command("create")
          .argument("<name>")
          .description("add a user")
          .option(
            "--password-stdin",
            "needed: the password comes on standard input, where no list of processes shows it",
          )
          .option("--display-name <text>", "the name that applications with the scope profile see")
          .option("--email <address>", "the address that applications with the scope email see"),
      ),
    ),
  );
  addExamples(create, [["tulle auth user create ann --password-stdin < password.txt", "add a user"]]);
  create.action(async (name: string, options: Options) => {
    const wanted = {
      name,
      password: await password(context, options),
      displayName: options.displayName,
      email: options.email,
      emailVerified: options.emailVerified,
      claims: claimsOf(options),
    };
    const user = accepted(
      await withStore(context, options, ({ database, config }) => createUser(database, hasher(config), wanted), true),
    );
    await context.printData(shown(user), options.output, () => `user ${user.name} created (sub ${user.id})\n`);
  });
  const list = addOutputOption(addStoreOptions(command.command("list").description("list users")));
  list.action(async (options: Options) => {
    const users = await withStore(context, options, ({ database }) => allUsers(database));
    await context.printData(users.map(shown), options.output, () =>
      formatFitting(
        ["NAME", "SUB", "CREATED", "STATE"],
        users.map((user) => [
          user.name,
          user.id,
          moment(user.createdAtMs),
          user.disabledAtMs === undefined ? "active" : "disabled",
        ]),
        { columns: context.columns, title: 0, empty: "no users" },
      ),
    );
  });
  addUserChanges(command, context);
}

function addUserChanges(command: Command, context: CommandContext): void {
  const change = command
    .command("update")
    .argument("<name>")
    .description("change a user; --disable ends every session and grant")
    .option("--display-name <text>", "the name that applications see")
    .option("--email <address>", "the address that applications see; a new one is not verified")
    .option("--no-email-verified", "it is not known any more to be the user's")
    .option("--disable", "let the user sign in no more")
    .option("--enable", "let the user sign in again");
  addStoreOptions(addClaimOptions(change)).action(async (name: string, options: Options) => {
    const disabled = options.disable === true ? true : options.enable === true ? false : undefined;
    const { displayName, email, emailVerified } = options;
    const settings = { displayName, email, emailVerified, claims: claimsOf(options), disabled };
    accepted(await withStore(context, options, ({ database }) => updateUserSettings(database, name, settings)));
    context.stdout(`user ${name} changed\n`);
  });
  const renew = command
    .command("password")
    .argument("<name>")
    .description("set a new password, which ends every session and grant")
    .option("--password-stdin", "read it from standard input");
  addStoreOptions(renew).action(async (name: string, options: Options) => {
    const wanted = await password(context, options);
    accepted(
      await withStore(context, options, ({ database, config }) =>
        changeUserPassword(database, hasher(config), name, wanted),
      ),
    );
    context.stdout(`password of ${name} changed; its sessions and grants have ended\n`);
  });
  const remove = command.command("delete").argument("<name>").description("delete a user and all that belongs to it");
  addStoreOptions(remove).action(async (name: string, options: Options) => {
    accepted(await withStore(context, options, ({ database }) => removeUser(database, name)));
    context.stdout(`user ${name} deleted\n`);
  });
}
