// The token that writes over TCP need: a file of the state directory that only its owner can read.
import { randomBytes } from "node:crypto";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import path from "node:path";

export function tokenFile(stateDirectory: string): string {
  return path.join(stateDirectory, "token");
}

/** The token there is, or a new one. */
export async function readOrMakeToken(stateDirectory: string): Promise<string> {
  await mkdir(stateDirectory, { recursive: true, mode: 0o700 });
  const file = tokenFile(stateDirectory);
  try {
    await writeFile(file, `${randomBytes(32).toString("base64url")}\n`, { mode: 0o600, flag: "wx" });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  }
  const token = (await readFile(file, "utf8")).trim();
  if (token === "") throw new Error(`${file} is empty: remove it, and a new token is made`);
  return token;
}
