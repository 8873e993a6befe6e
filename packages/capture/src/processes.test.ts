// Which processes belong together and which of them has a socket, asked of real ones.
import assert from "node:assert/strict";
import { once } from "node:events";
import net from "node:net";
import { test } from "node:test";
import { startProcess } from "../../../tests/tools/processes.ts";
import { commandOf, environmentOf, familyOf, holdersOf, listProcesses, type ProcessRow } from "./processes.ts";
import { listeningSocket } from "./socket-owner.ts";

const row = (pid: number, parent: number, group: number, session: number): ProcessRow => ({
  pid,
  parent,
  group,
  session,
});

test("a family is what descends from its leader or shares its group or session", () => {
  const all = [
    row(1, 0, 1, 1),
    row(10, 1, 10, 10), // the leader
    row(14, 13, 14, 10), // listed before its parent
    row(11, 10, 10, 10),
    row(12, 1, 10, 10), // its parent has ended
    row(13, 10, 13, 13), // in a session of its own
    row(20, 1, 20, 20),
    row(21, 20, 20, 20),
  ];
  assert.deepEqual(
    familyOf(10, all).toSorted((a, b) => a - b),
    [10, 11, 12, 13, 14],
  );
  assert.deepEqual(familyOf(30, all), [30], "that of one that has gone is itself");
});

test("who has a socket open is found among all processes, with its command in one printable line", async (t) => {
  const server = net.createServer();
  t.after(() => server.close());
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const socket = listeningSocket({ ip: "127.0.0.1", port: (server.address() as net.AddressInfo).port });
  assert.ok(typeof socket === "object");
  const pids = listProcesses().map(({ pid }) => pid);
  assert.deepEqual(holdersOf(socket.inode, pids), [process.pid]);
  assert.deepEqual(holdersOf(socket.inode, [process.ppid]), []);
  await using other = await startProcess("sh", ["-c", "sleep 60", "a\u001B[31m\n\u202Eb\u009B"], {
    env: { POD_NAME: "a=b" },
    group: true,
  });
  assert.equal(commandOf(other.pid), "sh -c sleep 60 a [31m b");
  await using long = await startProcess("sh", ["-c", "sleep 60", "x".repeat(1000)], { group: true });
  assert.equal(commandOf(long.pid), `sh -c sleep 60 ${"x".repeat(44)}…`);
  assert.equal(environmentOf(other.pid).get("POD_NAME"), "a=b");
});
