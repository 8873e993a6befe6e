// Consents and codes that meet other changes of the same owner: two at a time lose nothing, and none outlives what has
// ended the session behind it.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { updateClient } from "../admin/clients.ts";
import { changeUserPassword } from "../admin/users.ts";
import type { Database } from "../store/database.ts";
import { findGrant, rememberConsent, revokeGrant } from "../store/grants.ts";
import { openDatabase } from "../store/open.ts";
import { createSession, endSession, joinSession } from "../store/sessions.ts";
import { findUserByName, holdUser } from "../store/users.ts";
import type { PostgresqlServer } from "../testing/postgresql-server.ts";
import { postgresqlServer } from "../testing/postgresql-server.ts";
import { installation } from "../testing/server-processes.ts";
import { answerOf, testPassword, testRequest, testServer } from "../testing/test-server.ts";

let postgresql: PostgresqlServer;
before(async () => {
  postgresql = await postgresqlServer();
});
after(() => postgresql[Symbol.asyncDispose]());

const rounds = 30;

for (const dialect of ["SQLite", "PostgreSQL"] as const) {
  test(`${dialect}: of two consents at the same time both are kept, and a grant that is taken back stays so`, async (t) => {
    await using shared = await installation(dialect === "SQLite" ? undefined : await postgresql.newDatabase());
    const databases = await Promise.all([openDatabase(shared.config), openDatabase(shared.config)]);
    t.after(() => Promise.all(databases.map((database) => database.close())));
    const [one, two] = databases;
    const user = await one.read((reader) => findUserByName(reader, "ann"));
    const userId = user!.id;
    const consent = (database: Database, token: string): Promise<unknown> =>
      database.transaction(async (transaction) => {
        await holdUser(transaction, userId);
        const told = { asked: [token], scope: [token], resources: [], byOwner: true, lifetimeMs: 1e9 };
        return rememberConsent(transaction, { userId, clientId: "app", ...told });
      });
    const grant = () => one.read((reader) => findGrant(reader, userId, "app"));
    for (let round = 0; round < rounds; round += 1) {
      await Promise.all([consent(one, "a"), consent(two, "b")]);
      const both = await grant();
      assert.deepEqual(both?.scope.toSorted(), ["a", "b"], `round ${round}`);
      await Promise.all([consent(one, "c"), two.transaction((transaction) => revokeGrant(transaction, both.id))]);
      const left = (await grant())?.scope ?? [];
      assert.ok(
        left.every((token) => token === "c"),
        `round ${round}: ${left.join()}`,
      );
      if (left.length > 0) await one.transaction(async (transaction) => revokeGrant(transaction, (await grant())!.id));
    }
  });
}

for (const dialect of ["SQLite", "PostgreSQL"] as const) {
  test(`${dialect}: a client that joins a session while it ends hears of the end, or has not joined it`, async (t) => {
    await using shared = await installation(dialect === "SQLite" ? undefined : await postgresql.newDatabase());
    const [one, two] = await Promise.all([openDatabase(shared.config), openDatabase(shared.config)]);
    t.after(() => Promise.all([one.close(), two.close()]));
    await updateClient(one, { issuerIsHttp: true }, "app", { backchannelLogoutUri: "http://127.0.0.1:9/logout" });
    const user = await one.read((reader) => findUserByName(reader, "ann"));
    const told = { userId: user!.id, lifetimeMs: 1e9, userAgent: "", address: "" };
    for (let round = 0; round < rounds; round += 1) {
      const { id } = await one.transaction((transaction) => createSession(transaction, told));
      const join = () => one.transaction((transaction) => joinSession(transaction, id, "app"));
      const end = () => two.transaction((transaction) => endSession(transaction, id, told.userId));
      // Either may be the first one to begin.
      const [joined] =
        round % 2 === 0 ? await Promise.all([join(), end()]) : (await Promise.all([end(), join()])).toReversed();
      const sql = "SELECT client_id FROM logout_notices WHERE session_id = ?";
      const notices = await one.read((reader) => reader.all(sql, [id]));
      assert.equal(notices.length, joined === true ? 1 : 0, `round ${round}`);
    }
  });
}

test("a new password while a consent is on its way leaves neither a consent nor a code", async (t) => {
  let meanwhile: (() => Promise<unknown>) | undefined;
  const server = await testServer(t, {
    database: async (config, nowMs) => {
      const inner = await openDatabase(config, { nowMs });
      return {
        dialect: inner.dialect,
        transaction: async (work) => {
          const first = meanwhile;
          meanwhile = undefined;
          await first?.();
          return inner.transaction(work);
        },
        read: (work) => inner.read(work),
        script: (transaction, sql) => inner.script(transaction, sql),
        compact: () => inner.compact(),
        close: () => inner.close(),
      };
    },
  });
  await server.client();
  await server.user();
  const browser = server.browser();
  const consent = await browser.signIn(await browser.open(server.authorizeUrl(testRequest)), "ann", testPassword);
  const { database, passwords } = server.context;
  meanwhile = () => changeUserPassword(database, passwords, "ann", "another long password");
  const visit = await browser.decide(consent, "allow");
  assert.equal(visit.location === undefined ? undefined : answerOf(visit).get("code"), undefined);
  assert.deepEqual(await database.read((reader) => reader.all("SELECT id FROM grants")), []);
});
