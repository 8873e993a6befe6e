// An authorization request that waits for its owner's consent, or that the owner has just signed in for. Bound to the
// browser, so that its address is worth nothing in another one. Before somebody has signed in nothing is kept: whoever
// has no account adds no row.
import { digest, newSecret } from "../crypto/secrets.ts";
import type { Reader, Transaction } from "./database.ts";

export interface Interaction {
  readonly id: string;
  /** The authorization request as it was sent, undecoded. */
  readonly parameters: string;
  /** The session that began for this request; absent where the owner had signed in before. */
  readonly sessionId: string | undefined;
}

export interface NewInteraction extends Omit<Interaction, "id"> {
  readonly userId: string;
  readonly browserSecret: string;
  readonly lifetimeMs: number;
}

/** As many windows as a person has open at once; the oldest makes way for one more. */
const maxOfUser = 50;

export async function createInteraction(transaction: Transaction, interaction: NewInteraction): Promise<Interaction> {
  const id = newSecret();
  await transaction.run(
    `INSERT INTO interactions (id_digest, browser_digest, purpose, parameters, session_id, user_id, created_at, expires_at)
     VALUES (?, ?, 'authorize', ?, ?, ?, ?, ?)`,
    [
      digest(id),
      digest(interaction.browserSecret),
      interaction.parameters,
      interaction.sessionId ?? null,
      interaction.userId,
      transaction.nowMs,
      transaction.nowMs + interaction.lifetimeMs,
    ],
  );
  await transaction.run(
    `DELETE FROM interactions WHERE id_digest IN
     (SELECT id_digest FROM interactions WHERE user_id = ? ORDER BY created_at DESC, expires_at DESC LIMIT 10 OFFSET ?)`,
    [interaction.userId, maxOfUser],
  );
  return { id, parameters: interaction.parameters, sessionId: interaction.sessionId };
}

export async function findInteraction(
  reader: Reader,
  id: string,
  browserSecret: string,
): Promise<Interaction | undefined> {
  return find(reader, { id, browserSecret, purpose: "authorize" });
}

/** One that its owner has answered with no, for as long as it would have been open. */
export async function findDenied(reader: Reader, id: string, browserSecret: string): Promise<Interaction | undefined> {
  return find(reader, { id, browserSecret, purpose: "denied" });
}

interface Wanted {
  readonly id: string;
  readonly browserSecret: string;
  readonly purpose: "authorize" | "denied";
}

async function find(reader: Reader, { id, browserSecret, purpose }: Wanted): Promise<Interaction | undefined> {
  const row = await reader.get<{ parameters: string; session_id: string | null }>(
    `SELECT parameters, session_id FROM interactions
     WHERE id_digest = ? AND browser_digest = ? AND purpose = ? AND expires_at > ?`,
    [digest(id), digest(browserSecret), purpose, reader.nowMs],
  );
  if (row === undefined) return undefined;
  return { id, parameters: row.parameters, sessionId: row.session_id ?? undefined };
}

/** False when it was finished already: of two answers to one question, one counts. */
export async function finishInteraction(transaction: Transaction, id: string): Promise<boolean> {
  const sql = "DELETE FROM interactions WHERE id_digest = ? AND purpose = 'authorize'";
  return (await transaction.run(sql, [digest(id)])) > 0;
}

/** The same for a no, which a browser that stays or comes back is told of. */
export async function denyInteraction(transaction: Transaction, id: string): Promise<boolean> {
  const sql = "UPDATE interactions SET purpose = 'denied' WHERE id_digest = ? AND purpose = 'authorize'";
  return (await transaction.run(sql, [digest(id)])) > 0;
}
