// The token that callers over TLS show: a text of the state that only its owner can read. On the Unix socket nobody
// needs it.
import { randomBytes } from "node:crypto";
import type { KeptTexts } from "../state/state-folder.ts";

const name = "token";

/**
 * The token there is, or a new one; one that others could read is replaced.
 * @throws where it is empty, or somebody else's
 */
export async function readOrMakeToken(state: KeptTexts): Promise<string> {
  const kept = await state.read(name);
  if (kept?.text.trim() === "") throw new Error(`${state.placeOf(name)} is empty: remove it, and a new token is made`);
  if (kept?.mayBeKnown === false) return kept.text.trim();
  const token = randomBytes(32).toString("base64url");
  if (kept === undefined) return (await state.writeNew(name, `${token}\n`)).trim();
  await state.write(name, `${token}\n`);
  return token;
}
