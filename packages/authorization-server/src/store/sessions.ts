// Signed-in browsers. The cookie holds a random secret, the row its digest and a public id, so that sessions can be
// listed and ended without anybody seeing the secret.
import { digest, newId, newSecret } from "../crypto/secrets.ts";
import { revokeWithSession } from "./authorizations.ts";
import type { Reader, Transaction } from "./database.ts";
import { queueLogoutNotices } from "./logout-notices.ts";

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

/** Whether it has not been ended; how old it may get is asked when it is found. */
export async function isSessionKept(reader: Reader, id: string): Promise<boolean> {
  return (await reader.get("SELECT 1 AS found FROM sessions WHERE id = ?", [id])) !== undefined;
}

/** Whether a session is in force, which this use keeps it. */
export async function keepSession(transaction: Transaction, id: string, idleMs: number): Promise<boolean> {
  const { nowMs } = transaction;
  const row = await transaction.get<SessionRow>(
    "SELECT * FROM sessions WHERE id = ? AND expires_at > ? AND seen_at > ?",
    [id, nowMs, nowMs - idleMs],
  );
  if (row === undefined) return false;
  await touchSession(transaction, fromRow(row));
  return true;
}

/**
 * Remembers that a client will have to hear of the session's end. False when it has ended already: the update waits for
 * whoever is ending it, and who ends it waits for this one.
 */
export async function joinSession(transaction: Transaction, sessionId: string, clientId: string): Promise<boolean> {
  const alive = await transaction.run("UPDATE sessions SET seen_at = ? WHERE id = ?", [transaction.nowMs, sessionId]);
  if (alive === 0) return false;
  await transaction.run("INSERT INTO session_clients (session_id, client_id) VALUES (?, ?) ON CONFLICT DO NOTHING", [
    sessionId,
    clientId,
  ]);
  return true;
}

/**
 * The same person signs in once more in the same browser: the secret is new, and the id stays, since clients know the
 * session by it. Undefined when `before` is no session of that person that is in force.
 */
export async function renewSession(
  transaction: Transaction,
  before: string,
  session: NewSession,
  idleMs: number,
): Promise<{ readonly id: string; readonly secret: string } | undefined> {
  const secret = newSecret();
  const now = transaction.nowMs;
  const sql = "SELECT id FROM sessions WHERE secret_digest = ? AND user_id = ? AND expires_at > ? AND seen_at > ?";
  const known = await transaction.get<{ id: string }>(sql, [digest(before), session.userId, now, now - idleMs]);
  if (known === undefined) return undefined;
  const changed = await transaction.run(
    `UPDATE sessions SET secret_digest = ?, authenticated_at = ?, seen_at = ?, expires_at = ?, user_agent = ?, address = ?
     WHERE secret_digest = ?`,
    [
      digest(secret),
      now,
      now,
      now + session.lifetimeMs,
      session.userAgent.slice(0, 300),
      session.address,
      digest(before),
    ],
  );
  return changed === 1 ? { id: known.id, secret } : undefined;
}

export async function endSession(transaction: Transaction, id: string, userId: string): Promise<boolean> {
  return (await endEach(transaction, "id = ? AND user_id = ?", [id, userId])) > 0;
}

export async function endSessionsOfUser(transaction: Transaction, userId: string): Promise<number> {
  return endEach(transaction, "user_id = ?", [userId]);
}

/** Ends the session that a browser had before somebody else signed in there. */
export async function endSessionBySecret(transaction: Transaction, secret: string): Promise<void> {
  await endEach(transaction, "secret_digest = ?", [digest(secret)]);
}

/** Nobody waits for the clients: what they have to hear is written down, and told later. */
async function endEach(transaction: Transaction, which: string, parameters: readonly string[]): Promise<number> {
  // Holds the rows against `joinSession`.
  await transaction.run(`UPDATE sessions SET seen_at = seen_at WHERE ${which}`, parameters);
  const sql = `SELECT id, user_id FROM sessions WHERE ${which}`;
  for (const { id, user_id: userId } of await transaction.all<SessionRow>(sql, parameters)) {
    await queueLogoutNotices(transaction, id);
    await revokeWithSession(transaction, id, userId);
  }
  return transaction.run(`DELETE FROM sessions WHERE ${which}`, parameters);
}
