// What commands that install take alike: where, and with which values.
import { readFile } from "node:fs/promises";
import path from "node:path";
import { text } from "node:stream/consumers";
import type { Command } from "commander";
import {
  defaultRevision,
  evaluateInstallation,
  type Installation,
  isFields,
  parseSet,
  rootNamespace,
} from "@tulle/kubernetes";
import { parse } from "yaml";
import { CommandFailure, exitCodes } from "../command/command-failure.ts";
import type { CommandContext } from "../command/command-module.ts";

export interface ValuesOptions {
  readonly namespace?: string;
  readonly revision?: string;
  readonly set?: readonly string[];
  readonly values?: readonly string[];
}

const again = (value: string, before: readonly string[] | undefined): readonly string[] => [...(before ?? []), value];

export function addValuesOptions(command: Command): Command {
  return command
    .option("-n, --namespace <namespace>", `namespace to install into (default: ${rootNamespace})`)
    .option("--set <path=value>", "a value of the charts, as Helm writes it (again for more)", again)
    .option("-f, --values <file>", 'values in YAML, "-" for standard input (again for more; later ones win)', again)
    .option("--revision <name>", "which control plane it is; several run beside each other (default: default)");
}

export const namespaceOf = ({ namespace = rootNamespace }: ValuesOptions): string => namespace;
export const revisionOf = ({ revision = defaultRevision }: ValuesOptions): string => revision;

/** What the values come down to. @throws {CommandFailure} with all that is wrong with them */
export async function installationOf(options: ValuesOptions, context: CommandContext): Promise<Installation> {
  const given: Readonly<Record<string, unknown>>[] = [];
  for (const file of options.values ?? []) given.push(await readValues(file, context));
  const { revision } = options;
  if (revision !== undefined) given.push({ tulled: { revision }, gateway: { revision } });
  for (const each of options.set ?? []) {
    try {
      given.push(parseSet(each));
    } catch (error) {
      throw new CommandFailure(`--set: ${(error as Error).message}`, { exitCode: exitCodes.usage, cause: error });
    }
  }
  const installation = evaluateInstallation(given, namespaceOf(options));
  if (installation.problems.length === 0) return installation;
  throw new CommandFailure(`the values are wrong:\n${installation.problems.map((each) => `  ${each}`).join("\n")}`, {
    exitCode: exitCodes.usage,
  });
}

async function readValues(file: string, context: CommandContext): Promise<Readonly<Record<string, unknown>>> {
  let values: unknown;
  try {
    const content = file === "-" ? await text(context.stdin) : await readFile(path.resolve(context.cwd, file), "utf8");
    values = parse(content) ?? {};
  } catch (error) {
    throw new CommandFailure(`${file}: ${(error as Error).message}`, { exitCode: exitCodes.usage, cause: error });
  }
  if (isFields(values)) return values;
  throw new CommandFailure(`${file}: values are a mapping`, { exitCode: exitCodes.usage });
}
