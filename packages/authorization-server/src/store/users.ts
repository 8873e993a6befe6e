// Resource owners. `id` is the `sub` of tokens: random, and marked so that it can never equal a client id (RFC 9700
// §4.15).
import { newId } from "../crypto/secrets.ts";
import type { Reader, Transaction } from "./database.ts";

export const subjectPrefix = "usr_";

export type UserClaims = Readonly<Record<string, unknown>>;

export interface User {
  readonly id: string;
  readonly name: string;
  readonly displayName: string | undefined;
  readonly email: string | undefined;
  readonly emailVerified: boolean;
  /** Roles, groups and whatever else applications want to know: each is released by the scope of its name. */
  readonly claims: UserClaims;
  readonly passwordHash: string;
  readonly createdAtMs: number;
  readonly disabledAtMs: number | undefined;
}

interface UserRow {
  readonly id: string;
  readonly name: string;
  readonly display_name: string | null;
  readonly email: string | null;
  readonly email_verified: number;
  readonly claims: string;
  readonly password_hash: string;
  readonly created_at: number;
  readonly disabled_at: number | null;
}

function fromRow(row: UserRow): User {
  return {
    id: row.id,
    name: row.name,
    displayName: row.display_name ?? undefined,
    email: row.email ?? undefined,
    emailVerified: row.email_verified === 1,
    claims: row.claims === "{}" ? {} : (JSON.parse(row.claims) as UserClaims),
    passwordHash: row.password_hash,
    createdAtMs: row.created_at,
    disabledAtMs: row.disabled_at ?? undefined,
  };
}

export function newSubject(): string {
  return subjectPrefix + newId();
}

/** Names compare without regard to case, width or composition: `Ann` and `ann` are one account. */
export function canonicalUserName(name: string): string {
  return name.normalize("NFKC").trim().toLowerCase();
}

export async function findUserByName(reader: Reader, name: string): Promise<User | undefined> {
  const row = await reader.get<UserRow>("SELECT * FROM users WHERE name = ?", [canonicalUserName(name)]);
  return row === undefined ? undefined : fromRow(row);
}

export async function findUser(reader: Reader, id: string): Promise<User | undefined> {
  const row = await reader.get<UserRow>("SELECT * FROM users WHERE id = ?", [id]);
  return row === undefined ? undefined : fromRow(row);
}

export async function listUsers(reader: Reader): Promise<readonly User[]> {
  return (await reader.all<UserRow>("SELECT * FROM users ORDER BY name")).map(fromRow);
}

export async function insertUser(transaction: Transaction, user: User): Promise<void> {
  await transaction.run(
    `INSERT INTO users (id, name, display_name, email, email_verified, claims, password_hash, password_changed_at,
      created_at, disabled_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    [
      user.id,
      user.name,
      user.displayName ?? null,
      user.email ?? null,
      user.emailVerified ? 1 : 0,
      JSON.stringify(user.claims),
      user.passwordHash,
      user.createdAtMs,
      user.createdAtMs,
      user.disabledAtMs ?? null,
    ],
  );
}

export async function updateUser(transaction: Transaction, user: User): Promise<void> {
  await transaction.run(
    "UPDATE users SET display_name = ?, email = ?, email_verified = ?, claims = ?, disabled_at = ? WHERE id = ?",
    [
      user.displayName ?? null,
      user.email ?? null,
      user.emailVerified ? 1 : 0,
      JSON.stringify(user.claims),
      user.disabledAtMs ?? null,
      user.id,
    ],
  );
}

export async function setPassword(transaction: Transaction, userId: string, passwordHash: string): Promise<void> {
  await transaction.run("UPDATE users SET password_hash = ?, password_changed_at = ? WHERE id = ?", [
    passwordHash,
    transaction.nowMs,
    userId,
  ]);
}

export async function deleteUser(transaction: Transaction, id: string): Promise<boolean> {
  return (await transaction.run("DELETE FROM users WHERE id = ?", [id])) > 0;
}

/**
 * Makes every other transaction that holds or changes this user wait until the end of this one. False where the user is
 * gone or disabled. Whoever holds sessions or grants too holds the user first, so that no two wait for each other.
 */
export async function holdUser(transaction: Transaction, id: string): Promise<boolean> {
  const sql = "UPDATE users SET disabled_at = disabled_at WHERE id = ? AND disabled_at IS NULL";
  return (await transaction.run(sql, [id])) === 1;
}
