// Whether a port is somebody's, or only kept by connections that are closed.
import assert from "node:assert/strict";
import { createServer } from "node:net";
import { test } from "node:test";
import { freePort } from "../../../../tests/tools/processes.ts";
import { runCommand } from "../../../../tests/tools/run-command.ts";
import { listeningSocket } from "./libc.ts";
import { isKeptByClosedConnections } from "./port-holder.ts";

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
  assert.equal(await isKeptByClosedConnections("127.0.0.1", port), false);
  const ran = await runCommand("python3", ["-c", program, String(port)]);
  assert.equal(ran.code, 0, ran.stderr);
  assert.throws(() => listeningSocket("127.0.0.1", port), /EADDRINUSE/);
  assert.equal(await isKeptByClosedConnections("127.0.0.1", port), true);
});

test("a port that somebody listens on is not kept by connections", async (t) => {
  const server = createServer((socket) => socket.end()).listen(0, "127.0.0.1");
  t.after(() => server.close());
  await new Promise((resolve) => server.once("listening", resolve));
  const { port } = server.address() as { port: number };
  assert.equal(await isKeptByClosedConnections("127.0.0.1", port), false);
});
