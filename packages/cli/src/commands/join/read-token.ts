// A token, from where other users do not see it.
import { readFile } from "node:fs/promises";
import path from "node:path";
import { CommandFailure, exitCodes } from "../../command/command-failure.ts";
import type { CommandContext } from "../../command/command-module.ts";

export interface TokenOptions {
  readonly token?: string;
  readonly tokenFile?: string;
}

/** Longer than any token. */
const maxCharacters = 64 * 1024;

export async function readToken(
  { token, tokenFile }: TokenOptions,
  { env, cwd, stdin }: Pick<CommandContext, "env" | "cwd" | "stdin">,
): Promise<string | undefined> {
  if (token !== undefined) return token.trim();
  if (tokenFile === undefined) return env["TULLE_JOIN_TOKEN"]?.trim() || undefined;
  if (tokenFile === "-") return (await wholeText(stdin)).trim();
  try {
    return (await readFile(path.resolve(cwd, tokenFile), "utf8")).trim();
  } catch (error) {
    throw new CommandFailure(`the token cannot be read: ${(error as Error).message}`, { exitCode: exitCodes.usage });
  }
}

async function wholeText(stdin: NodeJS.ReadableStream): Promise<string> {
  let text = "";
  for await (const chunk of stdin) {
    text += chunk.toString();
    if (text.length > maxCharacters) break;
  }
  return text;
}
