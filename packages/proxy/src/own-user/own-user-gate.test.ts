// Who is let in to a port of the own user, with real connections of real users.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { once } from "node:events";
import net from "node:net";
import { test, type TestContext } from "node:test";
import { isOfOwnUser } from "@tulle/capture";
import { startProcess, waitFor } from "../../../../tests/tools/processes.ts";
import { OwnUserGate } from "./own-user-gate.ts";

const uid = process.getuid!();
const nobodyUid = 65_534;

test("root and this user pass; others, nobody, and those of a system that tells nothing do by what is known", () => {
  const owned = (owner: number): boolean => isOfOwnUser({ uid: owner, inode: 1, cookie: 1n });
  assert.deepEqual([owned(0), owned(uid), owned(uid + 1)], [true, true, false]);
  assert.equal(isOfOwnUser("nobody"), false);
  assert.equal(isOfOwnUser("unknown"), true);
});

interface GatedPort {
  readonly port: number;
  readonly verdicts: boolean[];
  /** How many connections each line of the log tells of. */
  readonly told: number[];
  nowMs: number;
}

async function openGate(t: TestContext): Promise<GatedPort> {
  const told: number[] = [];
  const gate = new OwnUserGate(
    { warning: (_message, fields) => void told.push(fields!["times"] as number) },
    () => gated.nowMs,
  );
  const verdicts: boolean[] = [];
  const server = net.createServer({ allowHalfOpen: true, pauseOnConnect: true }, (socket) => {
    socket.on("error", () => undefined);
    verdicts.push(gate.admits(socket, "15007"));
    socket.destroy();
  });
  t.after(() => server.close());
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const gated: GatedPort = { port: (server.address() as net.AddressInfo).port, verdicts, told, nowMs: 0 };
  return gated;
}

const connectAs = (user: number, port: number, then: string): readonly string[] => [
  "-e",
  `process.setgroups?.([]); process.setuid(${user});
   const socket = require("node:net").connect({ port: ${port}, host: "127.0.0.1", allowHalfOpen: true });
   socket.on("error", () => {}).on("close", () => process.exit()).on("connect", () => { ${then} });`,
];

test("a program of this user passes, one that sends no more but listens too, one of another user does not", async (t) => {
  const gated = await openGate(t);
  for (const then of ["", "socket.end('GET / HTTP/1.1')"]) {
    await (
      await startProcess(process.execPath, connectAs(uid, gated.port, then))
    ).exited;
  }
  await waitFor(() => gated.verdicts.length === 2, { what: "two connections" });
  assert.deepEqual(gated.verdicts, [true, true]);
  if (uid !== 0) {
    t.diagnostic("only root can start a program as another user");
    return;
  }
  await (
    await startProcess(process.execPath, connectAs(nobodyUid, gated.port, ""))
  ).exited;
  await waitFor(() => gated.verdicts.length === 3, { what: "the third connection" });
  assert.deepEqual(gated.verdicts, [true, true, false]);
});

// Connects, writes and closes; whoever accepts the connections looks at them when their program is gone.
const blindly = `
  const net = require("node:net");
  let left = 120;
  const one = () => {
    const socket = net.connect({ port: Number(process.argv[1]), host: "127.0.0.1" });
    socket.on("connect", () => socket.end("POST /quitquitquit HTTP/1.1\\r\\nhost: a\\r\\n\\r\\n", () => socket.destroy()));
    socket.on("error", (error) => { throw error; });
    socket.on("close", () => (left -= 1) > 0 ? one() : process.exit());
  };
  one();
`;

for (const user of uid === 0 ? [uid, nobodyUid] : [uid]) {
  test(`of 120 requests of user ${user} whose sender closes before anybody looks none passes, and the log is not flooded`, async (t) => {
    const gated = await openGate(t);
    // Nothing is accepted while this waits.
    const ended = spawnSync(process.execPath, [
      "-e",
      `process.setgroups?.([]); process.setuid(${user}); ${blindly}`,
      String(gated.port),
    ]);
    assert.equal(ended.status, 0, ended.stderr.toString());
    await waitFor(() => gated.verdicts.length === 120, { what: "all connections" });
    assert.equal(gated.verdicts.filter((passes) => passes).length, 0);
    assert.deepEqual(gated.told, [1]);
    gated.nowMs = 1000;
    spawnSync(process.execPath, ["-e", blindly, String(gated.port)]);
    await waitFor(() => gated.verdicts.length === 240, { what: "all connections" });
    assert.deepEqual(gated.told, [1, 120]);
  });
}
