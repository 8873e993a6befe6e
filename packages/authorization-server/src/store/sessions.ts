// Signed-in browsers. The cookie holds a random secret, the row its digest and a public id, so that sessions can be
// listed and ended without anybody seeing the secret.
import { digest, newId, newSecret } from "../crypto/secrets.ts";
import type { Reader, Transaction } from "./database.ts";

export interface Session {
  /** Public id, also the `sid` of ID tokens. */
  readonly id: string;
  readonly userId: string;
  readonly authenticatedAtMs: number;
  readonly seenAtMs: number;
  readonly expiresAtMs: number;
  readonly userAgent: string;
  readonly address: string;
}

interface SessionRow {
  readonly id: string;
  readonly user_id: string;
  readonly authenticated_at: number;
  readonly seen_at: number;
  readonly expires_at: number;
  readonly user_agent: string;
  readonly address: string;
}

function fromRow(row: SessionRow): Session {
  return {
    id: row.id,
    userId: row.user_id,
    authenticatedAtMs: row.authenticated_at,
    seenAtMs: row.seen_at,
    expiresAtMs: row.expires_at,
    userAgent: row.user_agent,
    address: row.address,
  };
}

export interface NewSession {
  readonly userId: string;
  readonly lifetimeMs: number;
  readonly userAgent: string;
  readonly address: string;
}

/** Answers the secret for the cookie, which is not kept, and the public id. */
export async function createSession(
  transaction: Transaction,
  session: NewSession,
): Promise<{ readonly id: string; readonly secret: string }> {
  const id = newId();
  const secret = newSecret();
  const now = transaction.nowMs;
  await transaction.run(
    `INSERT INTO sessions (id, secret_digest, user_id, authenticated_at, created_at, seen_at, expires_at, user_agent,
      address) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    [
      id,
      digest(secret),
      session.userId,
      now,
      now,
      now,
      now + session.lifetimeMs,
      session.userAgent.slice(0, 300),
      session.address,
    ],
  );
  return { id, secret };
}

/** A session in force, of a user in force: neither expired, nor idle for too long, nor ended. */
export async function findSession(reader: Reader, secret: string, idleMs: number): Promise<Session | undefined> {
  const row = await reader.get<SessionRow>(
    `SELECT sessions.* FROM sessions JOIN users ON users.id = sessions.user_id
     WHERE sessions.secret_digest = ? AND sessions.expires_at > ? AND sessions.seen_at > ? AND users.disabled_at IS NULL`,
    [digest(secret), reader.nowMs, reader.nowMs - idleMs],
  );
  return row === undefined ? undefined : fromRow(row);
}

const seenStepMs = 5 * 60_000;

/** Remembers that the session is in use, to the nearest five minutes, so that most requests write nothing. */
export async function touchSession(transaction: Transaction, session: Session): Promise<void> {
  if (transaction.nowMs - session.seenAtMs < seenStepMs) return;
  await transaction.run("UPDATE sessions SET seen_at = ? WHERE id = ?", [transaction.nowMs, session.id]);
}

export async function listSessions(reader: Reader, userId: string): Promise<readonly Session[]> {
  const rows = await reader.all<SessionRow>(
    "SELECT * FROM sessions WHERE user_id = ? AND expires_at > ? ORDER BY seen_at DESC",
    [userId, reader.nowMs],
  );
  return rows.map(fromRow);
}

export async function endSession(transaction: Transaction, id: string, userId: string): Promise<boolean> {
  return (await transaction.run("DELETE FROM sessions WHERE id = ? AND user_id = ?", [id, userId])) > 0;
}

export async function endSessionsOfUser(transaction: Transaction, userId: string): Promise<number> {
  return transaction.run("DELETE FROM sessions WHERE user_id = ?", [userId]);
}

/** Ends the session that a browser had before it signed in anew. */
export async function endSessionBySecret(transaction: Transaction, secret: string): Promise<void> {
  await transaction.run("DELETE FROM sessions WHERE secret_digest = ?", [digest(secret)]);
}
