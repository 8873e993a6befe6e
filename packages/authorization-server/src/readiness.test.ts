// `/readyz` on a disk that fills up and is freed again, and where the database takes no writes for another reason.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { test } from "node:test";
import { freePorts, startProcess, waitFor } from "../../../tests/tools/processes.ts";
import { mountTinyDisk } from "../../../tests/tools/tiny-disk.ts";
import { maxAnswerAgeMs, minFreeBytes } from "./readiness.ts";
import { DatabaseUnavailable } from "./store/database.ts";
import { openDatabase } from "./store/open.ts";
import { testServer } from "./testing/test-server.ts";

test("a full disk is told in words by 503, and over when there is room again", async (t) => {
  const folder = mkdtempSync(path.join(tmpdir(), "tulle-auth-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  await using disk = await mountTinyDisk(folder, 2 * minFreeBytes);
  const [port] = await freePorts(1);
  const cheap = ["--password-memory-kib", "8", "--password-iterations", "1"];
  const args = [path.join(import.meta.dirname, "main.ts"), "--data-dir", folder, "--port", String(port), ...cheap];
  await using server = await startProcess(process.execPath, args, { name: "authorization-server" });
  await server.waitForOutput(/^Ready/m);
  const answered = async (status: number): Promise<unknown> => {
    let body: unknown;
    const asked = async (): Promise<boolean> => {
      const answer = await fetch(`http://127.0.0.1:${port}/readyz`);
      body = await answer.json();
      return answer.status === status;
    };
    await waitFor(asked, { what: `an answer of ${status}` });
    return body;
  };
  assert.deepEqual(await answered(200), { status: "ready" });
  disk.fill();
  assert.deepEqual(await answered(503), {
    status: "not ready",
    reason: "the disk of the data directory is full: make 8 MiB of room",
  });
  assert.equal((await fetch(`http://127.0.0.1:${port}/healthz`)).status, 200, "a new start would help nothing");
  disk.free();
  assert.deepEqual(await answered(200), { status: "ready" });
  await server.waitForOutput(/not ready.*\n.*ready again/s);
});

test("a database that takes no writes is not ready, and is asked once a second at most; one that is silent is not ready either", async (t) => {
  let transactions = 0;
  let isFull = false;
  let isSilent = false;
  const server = await testServer(t, {
    database: async (config, nowMs) => {
      const inner = await openDatabase(config, { nowMs });
      return {
        dialect: inner.dialect,
        transaction: (work) => {
          transactions += 1;
          return isFull ? Promise.reject(new DatabaseUnavailable("disk full")) : inner.transaction(work);
        },
        read: (work) => (isSilent ? Promise.reject(new DatabaseUnavailable("no route")) : inner.read(work)),
        script: (transaction, sql) => inner.script(transaction, sql),
        compact: () => inner.compact(),
        close: () => inner.close(),
      };
    },
  });
  const ready = async (): Promise<{ readonly status: number; readonly body: string }> =>
    server.send({ method: "GET", url: `${server.issuer}/readyz`, headers: {}, body: undefined });
  assert.equal((await ready()).status, 200);
  isFull = true;
  transactions = 0;
  assert.equal((await ready()).status, 200, "the answer of the same second");
  assert.equal(transactions, 0);
  server.clock.nowMs += maxAnswerAgeMs;
  const [first] = await Promise.all(Array.from({ length: 50 }, ready));
  assert.equal(first!.status, 503);
  assert.match(first!.body, /"reason":"the database takes no writes; the log says why"/);
  assert.equal(transactions, 1);
  assert.ok(server.log.some(({ fields }) => String(fields?.["detail"]).includes("disk full")));
  isFull = false;
  server.clock.nowMs += maxAnswerAgeMs;
  assert.equal((await ready()).status, 200);
  isSilent = true;
  const unread = await ready();
  assert.deepEqual([unread.status, (await ready()).status], [503, 503]);
  assert.match(unread.body, /"reason":"the database does not answer"/);
  const told = server.log.filter(({ fields }) => String(fields?.["detail"]).includes("no route"));
  assert.equal(told.length, 1, "why stands in the log, once");
  isSilent = false;
  assert.equal((await ready()).status, 200, "at once");
});
