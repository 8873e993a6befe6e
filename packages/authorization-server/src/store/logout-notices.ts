// What clients have still to be told: that a session has ended. A row is written with the end itself, by whichever
// process ends it, and goes when its client has heard of it or will not hear. Who takes a row puts it off to its next
// try first, so that of several processes one tries, and another one does if that process dies.
import type { Reader, Transaction } from "./database.ts";

/**
 * Of one client: the store must not fill up because it does not answer. The courier removes what is beyond, at each of
 * its rounds.
 */
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
     WHERE session_clients.session_id = ? AND clients.backchannel_logout_uri IS NOT NULL
     ON CONFLICT DO NOTHING`,
    [transaction.nowMs, sessionId],
  );
}

/** Removes what waits beyond the limit, what was tried most often first; how many of which client. */
export async function trimLogoutNotices(transaction: Transaction): Promise<ReadonlyMap<string, number>> {
  const trimmed = new Map<string, number>();
  const full = await transaction.all<{ client_id: string; count: number | string }>(
    "SELECT client_id, count(*) AS count FROM logout_notices GROUP BY client_id HAVING count(*) > ?",
    [maxQueuedOfClient],
  );
  for (const { client_id: clientId, count } of full) {
    const removed = await transaction.run(
      `DELETE FROM logout_notices WHERE client_id = ? AND session_id IN
         (SELECT session_id FROM logout_notices WHERE client_id = ? ORDER BY attempts DESC, due_at LIMIT ?)`,
      [clientId, clientId, Number(count) - maxQueuedOfClient],
    );
    if (removed > 0) trimmed.set(clientId, removed);
  }
  return trimmed;
}

/**
 * The oldest of each client, those first that wait for the oldest ones, of `clients` clients at most. It goes from
 * client to client and to their first rows by the index, so that a long queue costs no more than a short one.
 */
export async function dueLogoutNotices(reader: Reader, clients: number): Promise<readonly LogoutNotice[]> {
  const waiting = await reader.all<{ client_id: string }>(
    `WITH RECURSIVE waiting (client_id) AS (
       SELECT min(client_id) FROM logout_notices
       UNION ALL
       SELECT (SELECT min(later.client_id) FROM logout_notices AS later WHERE later.client_id > waiting.client_id)
       FROM waiting WHERE waiting.client_id IS NOT NULL)
     SELECT client_id FROM
       (SELECT client_id, (SELECT min(due_at) FROM logout_notices AS own WHERE own.client_id = waiting.client_id) AS first
        FROM waiting WHERE client_id IS NOT NULL) AS firsts
     WHERE first <= ? ORDER BY first LIMIT ?`,
    [reader.nowMs, clients],
  );
  const due: LogoutNotice[] = [];
  for (const { client_id: clientId } of waiting) {
    const rows = await reader.all<{ session_id: string; user_id: string; attempts: number; due_at: number }>(
      `SELECT session_id, user_id, attempts, due_at FROM logout_notices WHERE client_id = ? AND due_at <= ?
       ORDER BY due_at LIMIT ?`,
      [clientId, reader.nowMs, maxNoticesOfClient],
    );
    for (const { session_id: sessionId, user_id: userId, attempts, due_at: dueAtMs } of rows)
      due.push({ sessionId, clientId, userId, attempts, dueAtMs });
  }
  return due;
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
