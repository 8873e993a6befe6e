// Expired rows go away by themselves, in small steps, and nothing else does.
import assert from "node:assert/strict";
import { test } from "node:test";
import { basic, testRedirectUri, testSecret, testServer } from "../testing/test-server.ts";
import { purgeExpired } from "./purge.ts";

const tables = ["authorizations", "refresh_tokens", "sessions", "grants", "interactions", "audit_events"];

test("what has expired is deleted a few rows at a time; what is in force stays", async (t) => {
  const server = await testServer(t);
  await server.client();
  await server.user();
  const { database } = server.context;
  const count = async (): Promise<Record<string, number>> => {
    const counts: Record<string, number> = {};
    for (const table of tables) {
      const row = await database.read((reader) => reader.get<{ n: number }>(`SELECT count(*) AS n FROM ${table}`));
      counts[table] = row!.n;
    }
    return counts;
  };
  const browser = server.browser();
  const request = { client_id: "app", response_type: "code", redirect_uri: testRedirectUri, scope: "offline_access" };
  for (let flow = 0; flow < 5; flow += 1) {
    const code = (await server.authorize(browser, request)).get("code")!;
    const form = { grant_type: "authorization_code", code, redirect_uri: testRedirectUri };
    await server.post("/token", form, { authorization: basic("app", testSecret) });
  }
  await server.authorize(browser, { ...request, scope: "profile" });
  await server.audit();
  const before = await count();
  assert.equal(await purgeExpired(database, 100), 0);
  assert.deepEqual(await count(), before);
  server.clock.nowMs += 3_600_000;
  assert.equal(await purgeExpired(database, 100), 1, "the authorization without refresh token");
  server.clock.nowMs += 400 * 86_400_000;
  assert.ok((await purgeExpired(database, 2)) <= 2 * tables.length);
  while ((await purgeExpired(database, 100)) > 0);
  assert.deepEqual(await count(), Object.fromEntries(tables.map((table) => [table, 0])));
});
