// What the `tulle auth` commands share: which store is meant, opening it, and turning its answers into output.
import { existsSync } from "node:fs";
import type { Command } from "commander";
import { loadConfig, openDatabase, readIssuer } from "@tulle/authorization-server";
import type { AdminResult, ClientRules, Config, Database } from "@tulle/authorization-server";
import { CommandFailure, exitCodes } from "../../command/command-failure.ts";
import type { CommandContext } from "../../command/command-module.ts";

export interface StoreOptions {
  readonly dataDir?: string;
  readonly database?: string;
  readonly config?: string;
  readonly keyEncryptionKeyFile?: string;
}

/** The same settings, flags and environment as the server itself reads. */
export function addStoreOptions(command: Command): Command {
  return command
    .option("--data-dir <folder>", "data directory of the server (default: .tulle/authorization-server)")
    .option("--database <url>", "postgres:// URL, where the server uses PostgreSQL")
    .option("--config <file>", "the server's configuration file");
}

export interface OpenStore {
  readonly database: Database;
  readonly config: Config;
  readonly rules: ClientRules;
}

/** Runs `work` on the store, also while the server runs. A store that is not there is made only by what adds to it. */
export async function withStore<T>(
  context: CommandContext,
  options: StoreOptions,
  work: (store: OpenStore) => Promise<T>,
  mayCreate = false,
): Promise<T> {
  const config = storeConfig(context, options);
  if (!mayCreate && config.databaseUrl === undefined && !existsSync(config.dataDir)) {
    throw new CommandFailure(`there is no data directory ${config.dataDir}`, {
      hint: "Name the server's: --data-dir samples/shop/.tulle/oauth2 is the shop's.",
    });
  }
  let database: Database;
  try {
    database = await openDatabase(config);
  } catch (error) {
    throw new CommandFailure(`cannot open the store: ${(error as Error).message}`, { cause: error });
  }
  try {
    const issuer = (await readIssuer(database)) ?? config.issuer;
    return await work({ database, config, rules: { issuerIsHttp: issuer.startsWith("http:") } });
  } finally {
    await database.close();
  }
}

function storeConfig(context: CommandContext, options: StoreOptions): Config {
  const argv: string[] = [];
  const add = (flag: string, value: string | undefined): void => {
    if (value !== undefined) argv.push(flag, value);
  };
  add("--data-dir", options.dataDir);
  add("--database", options.database);
  add("--config", options.config);
  add("--key-encryption-key-file", options.keyEncryptionKeyFile);
  const loaded = loadConfig({ argv, environment: context.env, storeOnly: true });
  if (loaded.config !== undefined) return loaded.config;
  const problems = "problems" in loaded ? (loaded.problems ?? []) : [];
  throw new CommandFailure(problems.join("; "), { exitCode: exitCodes.usage });
}

/** The value, or a failure that lists everything that is wrong. */
export function accepted<T>(result: AdminResult<T>): T {
  if (result.problems === undefined) return result.value;
  throw new CommandFailure(result.problems.join("\ntulle: "));
}

/** A secret from standard input: one line, its end not part of it. */
export async function secretFromStdin(context: CommandContext, what: string): Promise<string> {
  let text = "";
  for await (const chunk of context.stdin) {
    text += typeof chunk === "string" ? chunk : Buffer.from(chunk).toString("utf8");
    if (text.length > 10_000) break;
  }
  const secret = text.replace(/\r?\n$/, "");
  if (secret === "" || secret.includes("\n"))
    throw new CommandFailure(`standard input must hold the ${what} on one line`, { exitCode: exitCodes.usage });
  return secret;
}

export function collect(value: string, before: readonly string[] | undefined): readonly string[] {
  return [...(before ?? []), value];
}

export function moment(timeMs: number | undefined): string {
  return timeMs === undefined ? "-" : new Date(timeMs).toISOString().replace(/\.\d+Z$/, "Z");
}
