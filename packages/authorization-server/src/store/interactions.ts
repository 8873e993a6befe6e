// A sign-in or consent in progress: what the client asked for, kept while the owner answers. Bound to the browser that
// began it, so that its address is worth nothing in another one.
import { digest, newSecret } from "../crypto/secrets.ts";
import type { Reader, Transaction } from "./database.ts";

/** `authorize` answers a client; `account` leads to the owner's own page. */
export type InteractionPurpose = "authorize" | "account";

export interface Interaction {
  readonly id: string;
  readonly purpose: InteractionPurpose;
  /** The authorization request as it was sent, undecoded. */
  readonly parameters: string;
  /** The session that began in this interaction; absent until the owner has signed in here. */
  readonly sessionId: string | undefined;
}

export interface NewInteraction {
  readonly purpose: InteractionPurpose;
  readonly parameters: string;
  readonly browserSecret: string;
  readonly lifetimeMs: number;
}

export async function createInteraction(transaction: Transaction, interaction: NewInteraction): Promise<Interaction> {
  const id = newSecret();
  await transaction.run(
    `INSERT INTO interactions (id_digest, browser_digest, purpose, parameters, created_at, expires_at)
     VALUES (?, ?, ?, ?, ?, ?)`,
    [
      digest(id),
      digest(interaction.browserSecret),
      interaction.purpose,
      interaction.parameters,
      transaction.nowMs,
      transaction.nowMs + interaction.lifetimeMs,
    ],
  );
  return { id, purpose: interaction.purpose, parameters: interaction.parameters, sessionId: undefined };
}

export async function findInteraction(
  reader: Reader,
  id: string,
  browserSecret: string,
): Promise<Interaction | undefined> {
  const row = await reader.get<{ purpose: InteractionPurpose; parameters: string; session_id: string | null }>(
    "SELECT purpose, parameters, session_id FROM interactions WHERE id_digest = ? AND browser_digest = ? AND expires_at > ?",
    [digest(id), digest(browserSecret), reader.nowMs],
  );
  if (row === undefined) return undefined;
  return { id, purpose: row.purpose, parameters: row.parameters, sessionId: row.session_id ?? undefined };
}

export async function rememberSignIn(transaction: Transaction, id: string, sessionId: string): Promise<void> {
  await transaction.run("UPDATE interactions SET session_id = ? WHERE id_digest = ?", [sessionId, digest(id)]);
}

/** False when it was finished already: of two answers to one question, one counts. */
export async function finishInteraction(transaction: Transaction, id: string): Promise<boolean> {
  return (await transaction.run("DELETE FROM interactions WHERE id_digest = ?", [digest(id)])) > 0;
}
