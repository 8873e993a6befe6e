// Two server processes over one store: a code or a refresh token that both are asked for at the same instant works
// once, and what the winner got is worth nothing afterwards. On SQLite and on a real PostgreSQL server.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { waitFor } from "../../../../tests/tools/processes.ts";
import type { PostgresqlServer } from "../testing/postgresql-server.ts";
import { postgresqlServer } from "../testing/postgresql-server.ts";
import type { Installation, ServerProcess } from "../testing/server-processes.ts";
import { consentedBrowser, installation, nextCode, redemption } from "../testing/server-processes.ts";

let postgresql: PostgresqlServer;

before(async () => {
  postgresql = await postgresqlServer();
});

after(() => postgresql[Symbol.asyncDispose]());

const scope = "profile offline_access";
const rounds = 15;

for (const dialect of ["SQLite", "PostgreSQL"] as const) {
  describe(`two processes over ${dialect}`, () => {
    let shared: Installation;
    let one: ServerProcess;
    let two: ServerProcess;
    before(async () => {
      shared = await installation(dialect === "SQLite" ? undefined : await postgresql.newDatabase());
      // At once, over a store without keys.
      [one, two] = await Promise.all([shared.startProcess(), shared.startProcess()]);
    });
    after(() => shared?.[Symbol.asyncDispose]());

    test(`${dialect}: concurrent redemptions of one code on two processes`, async () => {
      const browser = await consentedBrowser(one, scope, "bob");
      for (let round = 0; round < rounds; round += 1) {
        const form = redemption(await nextCode(browser, scope));
        const answers = await Promise.all([one, two, one, two].map((server) => server.post("/token", form)));
        const won = answers.filter(({ status }) => status === 200);
        assert.equal(won.length, 1, JSON.stringify(answers));
        const lost = answers.filter(({ status }) => status !== 200);
        assert.ok(lost.every(({ status, json }) => status === 400 && json["error"] === "invalid_grant"));
        const { access_token: accessToken, refresh_token: refreshToken } = won[0]!.json;
        const inspected = await two.post("/introspect", { token: String(accessToken) });
        assert.deepEqual(inspected.json, { active: false });
        const refreshed = await one.post("/token", {
          grant_type: "refresh_token",
          refresh_token: String(refreshToken),
        });
        assert.equal(refreshed.json["error"], "invalid_grant");
      }
    });

    test(`${dialect}: concurrent uses of one refresh token get the same successor`, async () => {
      const browser = await consentedBrowser(one, scope, "cid");
      const first = await two.post("/token", redemption(await nextCode(browser, scope)));
      let token = String(first.json["refresh_token"]);
      for (let round = 0; round < rounds; round += 1) {
        const form = { grant_type: "refresh_token", refresh_token: token };
        const answers = await Promise.all([one, two, one, two].map((server) => server.post("/token", form)));
        assert.deepEqual([...new Set(answers.map(({ status }) => status))], [200], JSON.stringify(answers));
        const successors = new Set(answers.map(({ json }) => String(json["refresh_token"])));
        assert.equal(successors.size, 1);
        token = [...successors][0]!;
      }
    });

    test(`${dialect}: a token of one process is known to the other, keys included`, async () => {
      const browser = await consentedBrowser(one, "openid");
      const tokens = await two.post("/token", redemption(await nextCode(browser, "openid")));
      const inspected = await one.post("/introspect", { token: String(tokens.json["access_token"]) });
      assert.equal(inspected.json["username"], "ann");
    });
  });
}

test("a database that goes away gives 503, and its return is enough", async () => {
  await using shared = await installation(await postgresql.newDatabase());
  const server = await shared.startProcess();
  const browser = await consentedBrowser(server, "profile");
  const code = await nextCode(browser, "profile");
  await postgresql.crash();
  try {
    const refused = await server.post("/token", redemption(code));
    assert.equal(refused.status, 503);
    assert.equal(refused.json["error"], "temporarily_unavailable");
    const page = await browser.open("http://localhost:9400/account");
    assert.equal(page.status, 503);
    assert.equal(page.headers["retry-after"], "5");
    const health = await fetch(`http://127.0.0.1:${server.port}/healthz`);
    assert.equal(health.status, 200);
    const ready = await fetch(`http://127.0.0.1:${server.port}/readyz`);
    assert.equal(ready.status, 503);
  } finally {
    await postgresql.start();
  }
  await waitFor(async () => (await fetch(`http://127.0.0.1:${server.port}/readyz`)).ok, { what: "readiness" });
  const answer = await server.post("/token", redemption(code));
  assert.equal(answer.status, 200, "the code has survived");
});
