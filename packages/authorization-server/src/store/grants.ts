// What an owner has allowed a client, remembered until it expires or is taken back. One row for each pair.
import { newId } from "../crypto/secrets.ts";
import type { Reader, Transaction } from "./database.ts";
import { holdUser } from "./users.ts";

export interface Grant {
  readonly id: string;
  readonly userId: string;
  readonly clientId: string;
  readonly scope: readonly string[];
  /** What the owner was asked for and left out: no reason to ask again. */
  readonly declined: readonly string[];
  readonly resources: readonly string[];
  /** False where a trusted client got it unasked: no consent, should the client lose that trust. */
  readonly byOwner: boolean;
  readonly createdAtMs: number;
  readonly updatedAtMs: number;
  readonly expiresAtMs: number;
}

interface GrantRow {
  readonly id: string;
  readonly user_id: string;
  readonly client_id: string;
  readonly scope: string;
  readonly declined: string;
  readonly resources: string;
  readonly by_owner: number;
  readonly created_at: number;
  readonly updated_at: number;
  readonly expires_at: number;
}

function words(text: string): readonly string[] {
  return text === "" ? [] : text.split(" ");
}

function fromRow(row: GrantRow): Grant {
  return {
    id: row.id,
    userId: row.user_id,
    clientId: row.client_id,
    scope: words(row.scope),
    declined: words(row.declined),
    resources: JSON.parse(row.resources) as string[],
    byOwner: row.by_owner === 1,
    createdAtMs: row.created_at,
    updatedAtMs: row.updated_at,
    expiresAtMs: row.expires_at,
  };
}

export async function findGrant(reader: Reader, userId: string, clientId: string): Promise<Grant | undefined> {
  const row = await reader.get<GrantRow>(
    "SELECT * FROM grants WHERE user_id = ? AND client_id = ? AND expires_at > ?",
    [userId, clientId, reader.nowMs],
  );
  return row === undefined ? undefined : fromRow(row);
}

export async function isGrantInForce(reader: Reader, id: string): Promise<boolean> {
  return (
    (await reader.get("SELECT 1 AS found FROM grants WHERE id = ? AND expires_at > ?", [id, reader.nowMs])) !==
    undefined
  );
}

export interface ConsentGiven {
  readonly userId: string;
  readonly clientId: string;
  /** What the page asked about. */
  readonly asked: readonly string[];
  /** What of it the owner allows. */
  readonly scope: readonly string[];
  readonly resources: readonly string[];
  readonly byOwner: boolean;
  readonly lifetimeMs: number;
}

/**
 * Adds what was just answered, by the owner or in the owner's place for a trusted client, to what was answered before,
 * unless that has expired. Whoever takes back a scope that was allowed ends what was given with it. The transaction
 * holds the user (`holdUser`): of two answers the later one adds to the earlier one.
 */
export async function rememberConsent(transaction: Transaction, consent: ConsentGiven): Promise<Grant> {
  const before = await findGrant(transaction, consent.userId, consent.clientId);
  const now = transaction.nowMs;
  // What nobody was asked about is no consent of the owner's.
  const kept = before !== undefined && (before.byOwner || !consent.byOwner) ? before : undefined;
  const notAsked = (token: string): boolean => !consent.asked.includes(token);
  const left = consent.asked.filter((token) => !consent.scope.includes(token));
  if (before?.scope.some((token) => left.includes(token)) === true) {
    await revokeAuthorizations(transaction, before, "scope taken back");
  }
  const grant: Grant = {
    id: before?.id ?? newId(),
    userId: consent.userId,
    clientId: consent.clientId,
    scope: [...(kept?.scope ?? []).filter(notAsked), ...consent.scope],
    declined: [...(before?.declined ?? []).filter(notAsked), ...left],
    resources: [...new Set([...(kept?.resources ?? []), ...consent.resources])],
    byOwner: consent.byOwner,
    createdAtMs: before?.createdAtMs ?? now,
    updatedAtMs: now,
    expiresAtMs: now + consent.lifetimeMs,
  };
  await transaction.run(
    `INSERT INTO grants (id, user_id, client_id, scope, declined, resources, by_owner, created_at, updated_at, expires_at)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (user_id, client_id) DO UPDATE SET id = excluded.id,
     scope = excluded.scope, declined = excluded.declined, resources = excluded.resources, by_owner = excluded.by_owner, created_at = excluded.created_at,
     updated_at = excluded.updated_at, expires_at = excluded.expires_at`,
    [
      grant.id,
      grant.userId,
      grant.clientId,
      grant.scope.join(" "),
      grant.declined.join(" "),
      JSON.stringify(grant.resources),
      grant.byOwner ? 1 : 0,
      grant.createdAtMs,
      grant.updatedAtMs,
      grant.expiresAtMs,
    ],
  );
  return grant;
}

export async function listGrants(
  reader: Reader,
  filter: { readonly userId?: string; readonly clientId?: string },
): Promise<readonly Grant[]> {
  const rows = await reader.all<GrantRow>(
    `SELECT * FROM grants WHERE (user_id = ? OR ? = '') AND (client_id = ? OR ? = '') AND expires_at > ?
     ORDER BY updated_at DESC LIMIT 1000`,
    [filter.userId ?? "", filter.userId ?? "", filter.clientId ?? "", filter.clientId ?? "", reader.nowMs],
  );
  return rows.map(fromRow);
}

/** Takes back a grant and ends every code and token that came from it. `userId` undefined means any owner's. */
export async function revokeGrant(transaction: Transaction, id: string, userId?: string): Promise<boolean> {
  const row = await transaction.get<{ user_id: string }>("SELECT user_id FROM grants WHERE id = ?", [id]);
  if (row === undefined || (userId !== undefined && row.user_id !== userId)) return false;
  // A consent that is being given would bring back what it has read. A disabled user gives none.
  await holdUser(transaction, row.user_id);
  if ((await transaction.run("DELETE FROM grants WHERE id = ?", [id])) === 0) return false;
  await revokeAuthorizations(transaction, { id, userId: row.user_id }, "grant revoked");
  return true;
}

async function revokeAuthorizations(
  transaction: Transaction,
  { id, userId }: Pick<Grant, "id" | "userId">,
  because: string,
): Promise<void> {
  await transaction.run(
    `UPDATE authorizations SET revoked_at = ?, revoked_because = ?
     WHERE user_id = ? AND grant_id = ? AND revoked_at IS NULL`,
    [transaction.nowMs, because, userId, id],
  );
}

/** After a password change nothing that was given under the old password stays in force. */
export async function revokeGrantsOfUser(transaction: Transaction, userId: string, because: string): Promise<void> {
  await transaction.run("DELETE FROM grants WHERE user_id = ?", [userId]);
  await transaction.run(
    "UPDATE authorizations SET revoked_at = ?, revoked_because = ? WHERE user_id = ? AND revoked_at IS NULL",
    [transaction.nowMs, because, userId],
  );
}
