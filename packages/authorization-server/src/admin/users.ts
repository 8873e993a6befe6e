// Administration of users.
import { recordAdministration } from "../audit/audit-log.ts";
import type { PasswordHasher } from "../crypto/passwords.ts";
import { passwordFault, passwordFaultTexts } from "../crypto/password-rules.ts";
import type { Database } from "../store/database.ts";
import { revokeGrantsOfUser } from "../store/grants.ts";
import { endSessionsOfUser } from "../store/sessions.ts";
import type { User, UserClaims } from "../store/users.ts";
import {
  canonicalUserName,
  deleteUser,
  findUserByName,
  insertUser,
  listUsers,
  newSubject,
  setPassword,
  updateUser,
} from "../store/users.ts";
import type { AdminResult } from "./result.ts";

export interface NewUser {
  readonly name: string;
  readonly password: string;
  readonly displayName?: string | undefined;
  readonly email?: string | undefined;
  readonly emailVerified?: boolean | undefined;
  readonly claims?: UserClaims | undefined;
}

// What tokens and introspection say themselves, and what would be read as something else than a word about the user.
const reservedClaims = new Set(
  (
    "iss sub aud exp iat nbf jti nonce auth_time azp amr acr at_hash c_hash s_hash sid client_id scope cnf act may_act " +
    "events token_type active username name preferred_username email email_verified openid profile offline_access " +
    "address phone typ alg __proto__"
  ).split(" "),
);

/** They travel in tokens, and those in headers. */
const maxClaimsCharacters = 4096;

function* claimProblems(claims: UserClaims): Iterable<string> {
  for (const name of Object.keys(claims)) {
    if (!/^[A-Za-z0-9_.:/-]{1,100}$/.test(name)) yield `the claim ${name} has a name that no scope can have`;
    if (reservedClaims.has(name)) yield `the claim ${name} is the server's own`;
  }
  if (JSON.stringify(claims).length > maxClaimsCharacters)
    yield `the claims have more than ${maxClaimsCharacters} characters`;
}

/** What is null or an empty list goes. */
function mergedClaims(before: UserClaims, changes: UserClaims): UserClaims {
  const isNothing = (value: unknown): boolean => value === null || (Array.isArray(value) && value.length === 0);
  return Object.fromEntries(Object.entries({ ...before, ...changes }).filter(([, value]) => !isNothing(value)));
}

async function passwordProblems(password: string, userName: string): Promise<string[]> {
  const fault = await passwordFault(password, userName);
  return fault === undefined ? [] : [passwordFaultTexts[fault]];
}

export async function createUser(
  database: Database,
  passwords: PasswordHasher,
  wanted: NewUser,
): Promise<AdminResult<User>> {
  const problems = await passwordProblems(wanted.password, wanted.name);
  const name = canonicalUserName(wanted.name);
  if (!/^[^\p{C}\p{Z}]{1,100}$/u.test(name))
    problems.push("a user name has 1 to 100 characters, none of them a space or control character");
  const claims = mergedClaims({}, wanted.claims ?? {});
  problems.push(...claimProblems(claims));
  if (problems.length > 0) return { problems };
  const passwordHash = await passwords.hash(wanted.password);
  return database.transaction(async (transaction) => {
    if ((await findUserByName(transaction, name)) !== undefined)
      return { problems: [`the user ${name} exists already`] };
    const user: User = {
      id: newSubject(),
      name,
      displayName: wanted.displayName,
      email: wanted.email,
      emailVerified: wanted.emailVerified ?? false,
      claims,
      passwordHash,
      createdAtMs: transaction.nowMs,
      disabledAtMs: undefined,
    };
    await insertUser(transaction, user);
    await recordAdministration(transaction, { event: "user created", userId: user.id });
    return { value: user };
  });
}

/** A new password ends the user's sessions and grants. */
export async function changeUserPassword(
  database: Database,
  passwords: PasswordHasher,
  name: string,
  password: string,
): Promise<AdminResult<User>> {
  const problems = await passwordProblems(password, name);
  if (problems.length > 0) return { problems };
  const passwordHash = await passwords.hash(password);
  return database.transaction(async (transaction) => {
    const user = await findUserByName(transaction, name);
    if (user === undefined) return { problems: [`there is no user ${name}`] };
    await setPassword(transaction, user.id, passwordHash);
    await endSessionsOfUser(transaction, user.id);
    await revokeGrantsOfUser(transaction, user.id, "password changed");
    await recordAdministration(transaction, { event: "password set by an administrator", userId: user.id });
    return { value: { ...user, passwordHash } };
  });
}

export interface UserSettings {
  readonly displayName?: string | undefined;
  readonly email?: string | undefined;
  /** A new address is not verified unless this says so. */
  readonly emailVerified?: boolean | undefined;
  /** Those named change; null takes one away. */
  readonly claims?: UserClaims | undefined;
  readonly disabled?: boolean | undefined;
}

/** Disabling a user ends everything that is in force in the user's name. */
export async function updateUserSettings(
  database: Database,
  name: string,
  settings: UserSettings,
): Promise<AdminResult<User>> {
  return database.transaction(async (transaction) => {
    const before = await findUserByName(transaction, name);
    if (before === undefined) return { problems: [`there is no user ${name}`] };
    const disabledAtMs = settings.disabled === true ? (before.disabledAtMs ?? transaction.nowMs) : undefined;
    const claims = mergedClaims(before.claims, settings.claims ?? {});
    const problems = [...claimProblems(claims)];
    if (problems.length > 0) return { problems };
    const email = settings.email ?? before.email;
    const user: User = {
      ...before,
      displayName: settings.displayName ?? before.displayName,
      email,
      emailVerified: settings.emailVerified ?? (before.emailVerified && email === before.email),
      claims,
      disabledAtMs: settings.disabled === undefined ? before.disabledAtMs : disabledAtMs,
    };
    await updateUser(transaction, user);
    await recordAdministration(transaction, { event: "user changed", userId: user.id });
    if (settings.disabled === true) {
      await endSessionsOfUser(transaction, user.id);
      await revokeGrantsOfUser(transaction, user.id, "user disabled");
    }
    return { value: user };
  });
}

export async function removeUser(database: Database, name: string): Promise<AdminResult<string>> {
  return database.transaction(async (transaction) => {
    const user = await findUserByName(transaction, name);
    if (user === undefined) return { problems: [`there is no user ${name}`] };
    await endSessionsOfUser(transaction, user.id);
    await deleteUser(transaction, user.id);
    await recordAdministration(transaction, { event: "user deleted", userId: user.id });
    return { value: user.name };
  });
}

export async function allUsers(database: Database): Promise<readonly User[]> {
  return database.read((reader) => listUsers(reader));
}
