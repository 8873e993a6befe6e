// What clients have still to be told: that a session has ended. A row is written with the end itself, by whichever process ends it, and
// goes when its client has heard of it or will not hear. Who takes a row puts it off to its next try first, so that of several
// processes one tries, and another one does if that process dies.
import type { Reader, Transaction } from "./database.ts";

/** Beyond these ends of sessions are not announced: the store must not fill up because clients do not answer. */
const maxQueued = 100_000;
/** Of one client, so that one that never answers takes nothing from the others. */
export const maxQueuedOfClient = 5000;
/** Tries at one client at a time, so that a slow one does not hold up the others. */
export const maxNoticesOfClient = 4;

export interface LogoutNotice {
  readonly sessionId: string;
  readonly clientId: string;
  readonly userId: string;
  /** Tries before this one. */
  readonly attempts: number;
  readonly dueAtMs: number;
}

export async function queueLogoutNotices(transaction: Transaction, sessionId: string): Promise<void> {
  await transaction.run(
    `INSERT INTO logout_notices (session_id, client_id, user_id, attempts, due_at)
     SELECT sessions.id, clients.id, sessions.user_id, 0, CAST(? AS BIGINT) FROM session_clients
     JOIN sessions ON sessions.id = session_clients.session_id JOIN clients ON clients.id = session_clients.client_id
     WHERE session_clients.session_id = ? AND clients.backchannel_logout_uri IS NOT NULL AND
       (SELECT count(*) FROM logout_notices AS own WHERE own.client_id = clients.id) < ? AND
       (SELECT count(*) FROM logout_notices) < ?
     ON CONFLICT DO NOTHING`,
    [transaction.nowMs, sessionId, maxQueuedOfClient, maxQueued],
  );
}

export async function dueLogoutNotices(reader: Reader, limit: number): Promise<readonly LogoutNotice[]> {
  const rows = await reader.all<{
    session_id: string;
    client_id: string;
    user_id: string;
    attempts: number;
    due_at: number;
  }>(
    `SELECT session_id, client_id, user_id, attempts, due_at FROM
       (SELECT logout_notices.*, row_number() OVER (PARTITION BY client_id ORDER BY due_at) AS place
        FROM logout_notices WHERE due_at <= ?) AS due
     WHERE place <= ? ORDER BY due_at LIMIT ?`,
    [reader.nowMs, maxNoticesOfClient, limit],
  );
  return rows.map((row) => ({
    sessionId: row.session_id,
    clientId: row.client_id,
    userId: row.user_id,
    attempts: row.attempts,
    dueAtMs: row.due_at,
  }));
}

/** False when another process was faster. */
export async function takeLogoutNotice(
  transaction: Transaction,
  { sessionId, clientId, dueAtMs }: LogoutNotice,
  againAfterMs: number,
): Promise<boolean> {
  const changed = await transaction.run(
    `UPDATE logout_notices SET attempts = attempts + 1, due_at = ?
     WHERE session_id = ? AND client_id = ? AND due_at = ?`,
    [transaction.nowMs + againAfterMs, sessionId, clientId, dueAtMs],
  );
  return changed === 1;
}

export async function removeLogoutNotice(
  transaction: Transaction,
  { sessionId, clientId }: LogoutNotice,
): Promise<void> {
  await transaction.run("DELETE FROM logout_notices WHERE session_id = ? AND client_id = ?", [sessionId, clientId]);
}
