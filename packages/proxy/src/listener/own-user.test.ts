// Who is at the other end of a connection within this machine.
import assert from "node:assert/strict";
import { once } from "node:events";
import net from "node:net";
import { test } from "node:test";
import { startProcess, waitFor } from "../../../../tests/tools/processes.ts";
import { isOfOwnUser, uidInTable } from "./own-user.ts";

const table = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1 1 0 100 0 0 10 0
   1: 0200007F:9C40 0100007F:1F90 01 00000000:00000000 00:00000000 00000000 65534        0 2 1 0 20 4 30 10 -1
   2: 0100007F:1F90 0200007F:9C40 01 00000000:00000000 00:00000000 00000000     7        0 3 1 0 20 4 30 10 -1
`;

test("the row of the other end is found, and not that of this one", () => {
  const here = { ip: "127.0.0.1", port: 8080 };
  const there = { ip: "127.0.0.2", port: 40_000 };
  assert.equal(uidInTable(table, there, here), 65_534);
  assert.equal(uidInTable(table, here, there), 7);
  assert.equal(uidInTable(table, { ...there, port: 40_001 }, here), undefined);
});

test("a program of this user passes, one of another does not", async (t) => {
  const verdicts: boolean[] = [];
  const server = net.createServer((socket) => {
    verdicts.push(isOfOwnUser(socket));
    socket.destroy();
  });
  t.after(() => server.close());
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as net.AddressInfo;
  const connect = `require("node:net").connect(${port}, "127.0.0.1").on("error", () => {}).on("close", () => process.exit())`;
  const own = await startProcess(process.execPath, ["-e", connect]);
  await own.exited;
  assert.deepEqual(verdicts, [true]);
  if (process.getuid?.() !== 0) {
    t.diagnostic("only root can start a program as another user");
    return;
  }
  const foreign = await startProcess(process.execPath, ["-e", `process.setuid(65534); ${connect}`]);
  await foreign.exited;
  await waitFor(() => verdicts.length === 2, { what: "the second connection" });
  assert.deepEqual(verdicts, [true, false]);
});
