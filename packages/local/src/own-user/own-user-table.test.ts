// The rules as they are told to nft, and what comes of an nft that does not do it. What the kernel makes of them:
// tests/e2e/own-user-only.test.ts.
import assert from "node:assert/strict";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { test } from "node:test";
import { NoOwnUserTable, openOwnUserTable, ownUserRules } from "./own-user-table.ts";

const where = { name: "tulle_1", range: "127.16.4.0/22" };

for (const { uid, users } of [
  { uid: 1000, users: "{ 0, 1000 }" },
  { uid: 0, users: "{ 0 }" },
]) {
  test(`user ${uid} and root may send to the addresses and from them`, () => {
    const rules = ownUserRules({ ...where, uid })
      .split("\n")
      .filter((line) => line.startsWith("add rule "));
    assert.deepEqual(rules, [
      `add rule ip tulle_1 output ip daddr 127.16.4.0/22 meta skuid != ${users} reject`,
      `add rule ip tulle_1 output ip saddr 127.16.4.0/22 meta skuid ${users} accept`,
      `add rule ip tulle_1 output ip saddr 127.16.4.0/22 meta skuid != ${users} reject`,
      "add rule ip tulle_1 output ip saddr 127.16.4.0/22 tcp flags & (syn | ack) == syn | ack drop",
    ]);
  });
}

const script = (text: string): readonly string[] => ["/bin/sh", "-c", text];
const failures: readonly { readonly name: string; readonly nft: readonly string[]; readonly message: RegExp }[] = [
  { name: "no nft", nft: ["/nowhere/nft"], message: /ENOENT/ },
  { name: "no right", nft: script("echo 'Error: Operation not permitted' >&2; cat"), message: /not permitted$/ },
  { name: "an end without a word", nft: script("exit 3"), message: /^nft ended with 3$/ },
];
for (const { name, nft, message } of failures) {
  test(`${name}: no table`, async () => {
    const opening = openOwnUserTable({ ...where, uid: 1000, nft, onLost: () => assert.fail("it was never there") });
    await assert.rejects(opening, (error) => error instanceof NoOwnUserTable && message.test(error.message));
  });
}

const printed = "\tip saddr 127.16.4.0/22 tcp flags syn,ack / syn,ack drop";

test("a table that goes by itself is told of, with why", async () => {
  const folder = await mkdtemp(path.join(tmpdir(), "tulle-nft-"));
  try {
    const pidFile = path.join(folder, "pid");
    const lost = Promise.withResolvers<string>();
    const nft = script(`echo $$ > ${pidFile}; echo '${printed}'; exec cat > /dev/null`);
    await openOwnUserTable({ ...where, uid: 1000, nft, onLost: lost.resolve });
    process.kill(Number(await readFile(pidFile, "utf8")), "SIGTERM");
    assert.equal(await lost.promise, "nft ended with SIGTERM");
  } finally {
    await rm(folder, { recursive: true });
  }
});

test("one that is closed is not, and has gone when closing has ended", async () => {
  const nft = script(`echo '${printed}'; cat > /dev/null`);
  const table = await openOwnUserTable({ ...where, uid: 1000, nft, onLost: () => assert.fail("it was closed") });
  await table.close();
});
