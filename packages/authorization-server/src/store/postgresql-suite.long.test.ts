// Every test of the protocol again, over a real PostgreSQL server instead of SQLite.
import assert from "node:assert/strict";
import path from "node:path";
import { test } from "node:test";
import { runCommand } from "../../../../tests/tools/run-command.ts";
import { postgresqlServer } from "../testing/postgresql-server.ts";

const files = [
  "rules",
  "checks",
  "failures",
  "endpoints/endpoints",
  "admin/admin",
  "store/purge",
  "first-party",
  "readiness",
  "hints",
  "seed",
  "authorize/claims",
  "authorize/choice-of-scopes",
  "session-end/session-end",
];

test("the protocol's tests pass on PostgreSQL", async () => {
  await using server = await postgresqlServer();
  // NODE_TEST_CONTEXT would make the nested run report to this one.
  const { NODE_TEST_CONTEXT: _, ...environment } = process.env;
  const env = { ...environment, TULLE_TEST_POSTGRESQL: await server.newDatabase() };
  const paths = files.map((name) => path.join(import.meta.dirname, "..", `${name}.test.ts`));
  const args = ["--test", "--test-reporter=spec", ...paths];
  const result = await runCommand(process.execPath, args, { env, timeoutMs: 300_000 });
  assert.equal(result.code, 0, result.stdout);
  assert.match(result.stdout, /pass \d{2,}/);
});
