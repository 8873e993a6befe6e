// The frame around every command: finds the row of the table, loads that one file, lets commander parse, and turns what
// went wrong into a message and an exit status.
import { stackInSources } from "@tulle/loading/stack-in-sources";
import { Command, CommanderError } from "commander";
import { CommandFailure, exitCodes, type ExitCode } from "./command/command-failure.ts";
import type { CommandContext, CommandRow } from "./command/command-module.ts";
import { commandName, withCommandName } from "./command/command-name.ts";
import { commands } from "./commands.ts";
import { cloneScript } from "./command/installation.ts";
import { wrapItem, wrapLines, wrapText } from "./printing/wrap-text.ts";

/** Runs one command line (without `node` and the script's name) and gives the exit status. Never throws. */
export async function runCli(
  args: readonly string[],
  given: CommandContext,
  table: readonly CommandRow[] = commands,
): Promise<ExitCode> {
  // Not a copy: its getters are for those who ask.
  const context = Object.assign(Object.create(given) as CommandContext, {
    stderr: (text: string) => given.stderr(wrapLines(asTyped(text, given, table), given.columns)),
  });
  try {
    return await dispatch(args, context, table);
  } catch (error) {
    return report(error, context);
  }
}

async function dispatch(
  args: readonly string[],
  context: CommandContext,
  table: readonly CommandRow[],
): Promise<ExitCode> {
  const [first, second] = args;
  if (first === undefined || first === "--help" || first === "-h") {
    if (first !== undefined) showHelp(overview(table, context.columns), context, table);
    else context.stderr(overview(table, context.columns));
    return first === undefined ? exitCodes.usage : exitCodes.ok;
  }
  if (first === "help" && second === undefined) {
    showHelp(overview(table, context.columns), context, table);
    return exitCodes.ok;
  }
  if (first === "--version" || first === "-V") return dispatch(["version"], context, table);
  if (first.startsWith("-")) throw usageError(`unknown option '${first}' before a command`);
  const rest = first === "help" ? [second!, ...args.slice(2), "--help"] : args;
  const row = await findRow(rest[0]!, table);
  const program = new Command("tulle");
  const command = program.command(row.name).description(sentence(row.summary));
  prepare(program, context, table);
  const module = await row.load();
  module.register(command, context);
  for (const each of withSubcommands(command)) prepare(each, context, table);
  await program.parseAsync([row.name, ...rest.slice(1)], { from: "user" });
  return exitCodes.ok;
}

function showHelp(text: string, context: CommandContext, table: readonly CommandRow[]): void {
  context.stdout(wrapLines(asTyped(text, context, table), context.columns));
}

/** With the name that the person has typed for every command that is written out. */
function asTyped(text: string, { env, cwd }: CommandContext, table: readonly CommandRow[]): string {
  const name = commandName({
    invokedAs: env["TULLE_INVOKED_AS"],
    cwd,
    searchPath: env["PATH"],
    cloneScript: cloneScript(),
  });
  return withCommandName(
    text,
    name,
    table.flatMap((row) => [row.name, ...(row.aliases ?? [])]),
  );
}

async function findRow(name: string, table: readonly CommandRow[]): Promise<CommandRow> {
  const row = table.find((each) => each.name === name || each.aliases?.includes(name));
  if (row !== undefined) return row;
  // Loaded for the mistake alone: every command would start later for it.
  const { nearestName } = await import("@tulle/config");
  const near = nearestName(
    name,
    table.flatMap((each) => [each.name, ...(each.aliases ?? [])]),
  );
  throw usageError(`unknown command '${name}'`, near === undefined ? undefined : `Did you mean '${near}'?`);
}

function usageError(message: string, hint = "'tulle --help' lists all commands."): CommandFailure {
  return new CommandFailure(message, { hint, exitCode: exitCodes.usage });
}

function withSubcommands(command: Command): Command[] {
  return [command, ...command.commands.flatMap(withSubcommands)];
}

// Commander must neither end the process nor print by itself: exit statuses and streams are the frame's.
function prepare(command: Command, context: CommandContext, table: readonly CommandRow[]): void {
  command.exitOverride();
  command.helpOption("-h, --help", "show this help");
  command.configureHelp({
    // Commander's own limit leaves lines to the terminal, which breaks them within words.
    minWidthToWrap: 20,
    formatItem: (term, width, meaning, { helpWidth }) => wrapItem(term, width, meaning, helpWidth),
    ...command.configureHelp(),
  });
  if (command.commands.length > 0) command.helpCommand(false);
  command.showHelpAfterError(`Run '${fullName(command)} --help' for all options and examples.`);
  command.configureOutput({
    writeOut: (text) => showHelp(text, context, table),
    writeErr: (text) =>
      context.stderr(text.replace(/^error: /, "tulle: ").replace(/\n\(Did you mean (\S+)\?\)/, "\nDid you mean '$1'?")),
    getOutHelpWidth: () => context.columns ?? 100,
    getErrHelpWidth: () => context.columns ?? 100,
  });
}

function fullName(command: Command): string {
  return command.parent === null ? command.name() : `${fullName(command.parent)} ${command.name()}`;
}

function report(error: unknown, context: CommandContext): ExitCode {
  if (error instanceof CommanderError) {
    // Help and version are "errors" with status 0 in commander; it has printed the message already.
    return error.exitCode === 0 ? exitCodes.ok : exitCodes.usage;
  }
  if (error instanceof CommandFailure) {
    if (error.message !== "") context.stderr(`${wrapText(`tulle: ${error.message}`, context.columns, "  ")}\n`);
    if (error.hint !== undefined) context.stderr(`${error.hint}\n`);
    return error.exitCode;
  }
  const text = error instanceof Error ? stackInSources(error.stack ?? error.message) : String(error);
  context.stderr(`tulle: internal error, please report it\n${text}\n`);
  return exitCodes.failure;
}

function sentence(summary: string): string {
  return `${summary.charAt(0).toUpperCase()}${summary.slice(1)}.`;
}

const purpose =
  "A service mesh and an OAuth 2.0 authorization server: the same manifests on a laptop, on virtual machines and on Kubernetes.";

/** The text of `tulle --help`, from the table alone: no command's file is loaded for it. */
function overview(table: readonly CommandRow[], columns: number | undefined): string {
  const width = Math.max(...table.map((row) => names(row).length));
  const groups = [...new Set(table.map((row) => row.group))].map((group) => {
    const rows = table.filter((row) => row.group === group);
    const lines = rows.map((row) => `${wrapItem(names(row), width, row.summary, columns)}\n`);
    return `${group}:\n${lines.join("")}`;
  });
  return `Usage: tulle <command> [options]

${purpose}

${groups.join("\n")}
Examples:
  # run the sample shop, then call it from another terminal
  tulle up samples/shop
  curl localhost:8080/api/catalog

'tulle <command> --help' shows a command's options and examples.
`;
}

function names(row: CommandRow): string {
  return [row.name, ...(row.aliases ?? [])].join(", ");
}
