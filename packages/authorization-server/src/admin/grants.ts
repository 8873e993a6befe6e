// Administration of what is in force: grants and sessions, of one user or of all.
import { recordAdministration } from "../audit/audit-log.ts";
import type { Database } from "../store/database.ts";
import type { Grant } from "../store/grants.ts";
import { listGrants, revokeGrant } from "../store/grants.ts";
import type { Session } from "../store/sessions.ts";
import { endSessionsOfUser, listSessions, endSession } from "../store/sessions.ts";
import { findUser, findUserByName, listUsers } from "../store/users.ts";
import type { AdminResult } from "./result.ts";

export interface GrantListing extends Grant {
  readonly userName: string;
}

export interface SessionListing extends Session {
  readonly userName: string;
}

export interface GrantFilter {
  readonly userName?: string | undefined;
  readonly clientId?: string | undefined;
}

export async function grantsOf(database: Database, filter: GrantFilter): Promise<AdminResult<readonly GrantListing[]>> {
  return database.read(async (reader) => {
    const user = filter.userName === undefined ? undefined : await findUserByName(reader, filter.userName);
    if (filter.userName !== undefined && user === undefined)
      return { problems: [`there is no user ${filter.userName}`] };
    const grants = await listGrants(reader, {
      ...(user === undefined ? {} : { userId: user.id }),
      ...(filter.clientId === undefined ? {} : { clientId: filter.clientId }),
    });
    const listings: GrantListing[] = [];
    for (const grant of grants) {
      listings.push({ ...grant, userName: (await findUser(reader, grant.userId))?.name ?? grant.userId });
    }
    return { value: listings };
  });
}

/** Takes back one grant by its id, or all that the filter names; their codes and tokens end with them. */
export async function revokeGrants(
  database: Database,
  which: { readonly id: string } | GrantFilter,
): Promise<AdminResult<number>> {
  if ("id" in which) {
    const revoked = await database.transaction(async (transaction) => {
      const done = await revokeGrant(transaction, which.id);
      if (done) await recordAdministration(transaction, { event: "grant revoked by an administrator" });
      return done;
    });
    return revoked ? { value: 1 } : { problems: [`there is no grant ${which.id}`] };
  }
  const found = await grantsOf(database, which);
  if (found.value === undefined) return { problems: found.problems };
  const grants = found.value;
  await database.transaction(async (transaction) => {
    // In one order, whoever else does the same.
    for (const { id, userId, clientId } of grants.toSorted((a, b) => (a.userId < b.userId ? -1 : 1))) {
      await revokeGrant(transaction, id);
      await recordAdministration(transaction, { event: "grant revoked by an administrator", userId, clientId });
    }
  });
  return { value: grants.length };
}

export async function sessionsOf(
  database: Database,
  userName: string | undefined,
): Promise<AdminResult<readonly SessionListing[]>> {
  return database.read(async (reader) => {
    const one = userName === undefined ? undefined : await findUserByName(reader, userName);
    if (userName !== undefined && one === undefined) return { problems: [`there is no user ${userName}`] };
    const listings: SessionListing[] = [];
    for (const user of one === undefined ? await listUsers(reader) : [one]) {
      const sessions = await listSessions(reader, user.id);
      listings.push(...sessions.map((session) => ({ ...session, userName: user.name })));
    }
    return { value: listings };
  });
}

/** Signs a user out everywhere, or ends one session; grants and tokens stay. */
export async function endUserSessions(
  database: Database,
  userName: string,
  sessionId?: string,
): Promise<AdminResult<number>> {
  return database.transaction(async (transaction) => {
    const user = await findUserByName(transaction, userName);
    if (user === undefined) return { problems: [`there is no user ${userName}`] };
    await recordAdministration(transaction, { event: "sessions ended by an administrator", userId: user.id });
    if (sessionId === undefined) return { value: await endSessionsOfUser(transaction, user.id) };
    const ended = await endSession(transaction, sessionId, user.id);
    return ended ? { value: 1 } : { problems: [`there is no session ${sessionId} of ${userName}`] };
  });
}
