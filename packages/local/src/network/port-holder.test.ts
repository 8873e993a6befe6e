// Whether a port is somebody's and whose, or only kept by connections that are closed.
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type AddressInfo } from "node:net";
import { test } from "node:test";
import { freePort, startProcess } from "../../../../tests/tools/processes.ts";
import { runCommand } from "../../../../tests/tools/run-command.ts";
import { listeningSocket } from "./libc.ts";
import { holderText, isKeptByClosedConnections } from "./port-holder.ts";

/** A server that does not say SO_REUSEADDR, as Node's would, closes its one connection first, and ends. */
const program = `
import socket, sys
server = socket.socket()
server.bind(("127.0.0.1", int(sys.argv[1])))
server.listen()
client = socket.create_connection(server.getsockname())
server.accept()[0].close()
client.recv(1)
client.close()
`;

test("a port that closed connections keep is nobody's, and cannot be had yet", async () => {
  const port = await freePort();
  assert.equal(isKeptByClosedConnections("127.0.0.1", port), false);
  const ran = await runCommand("python3", ["-c", program, String(port)]);
  assert.equal(ran.code, 0, ran.stderr);
  assert.throws(() => listeningSocket("127.0.0.1", port), /EADDRINUSE/);
  assert.equal(isKeptByClosedConnections("127.0.0.1", port), true);
});

test("a port that somebody listens on is not kept by connections", async (t) => {
  const server = createServer((socket) => socket.end()).listen(0, "127.0.0.1");
  t.after(() => server.close());
  await new Promise((resolve) => server.once("listening", resolve));
  const { port } = server.address() as { port: number };
  assert.equal(isKeptByClosedConnections("127.0.0.1", port), false);
});

const listener = `
  process.title = "\\x1b[2J\\x9b1A\\u202Etxt\\rmine";
  const server = require("net").createServer().listen(0, "127.0.0.1", () => console.log(server.address().port));
`;

test("who has a port is told without what steers a terminal, whatever its program calls itself", async () => {
  await using started = await startProcess(process.execPath, ["-e", listener]);
  const [port = ""] = await started.waitForOutput(/^\d+$/m);
  assert.equal(holderText("127.0.0.1", Number(port)), ` by process ${started.pid} ([2J 1A txt mine)`);
});

for (const host of ["127.0.0.1", "0.0.0.0", "::"]) {
  test(`who listens on ${host} has 127.0.0.1`, async (t) => {
    const server = createServer().listen(0, host);
    t.after(() => server.close());
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    assert.match(holderText("127.0.0.1", port), new RegExp(`^ by process ${process.pid} \\(`));
    assert.equal(isKeptByClosedConnections("127.0.0.1", port), false);
  });
}

test("of a port that nobody has nothing is told", async () => {
  assert.equal(holderText("127.0.0.1", await freePort()), "");
});
