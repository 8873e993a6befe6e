// The token that callers over TLS show: a file of the state directory that only its owner can read. On the Unix socket nobody needs it.
import { randomBytes } from "node:crypto";
import path from "node:path";
import { writeSecretFile } from "@tulle/identity";
import { readOwnFile } from "@tulle/identity/own";

export function tokenFile(stateDirectory: string): string {
  return path.join(stateDirectory, "token");
}

/**
 * The token there is, or a new one. `mayBeKnown` says that others could reach the state directory; what they may have read is replaced.
 * @throws {NotOwn} where somebody else has put the file there
 */
export async function readOrMakeToken(stateDirectory: string, mayBeKnown: boolean): Promise<string> {
  const file = tokenFile(stateDirectory);
  const kept = mayBeKnown ? undefined : readOwnFile(file);
  if (kept?.text.trim() === "") throw new Error(`${file} is empty: remove it, and a new token is made`);
  if (kept !== undefined && !kept.isOpenToOthers) return kept.text.trim();
  const token = randomBytes(32).toString("base64url");
  await writeSecretFile(file, `${token}\n`);
  return token;
}
