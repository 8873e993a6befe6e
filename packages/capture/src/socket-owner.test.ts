// Whose socket it is, asked of the running kernel about real sockets in every state, both ways: by one question and by
// the whole table.
import assert from "node:assert/strict";
import { once } from "node:events";
import { readlinkSync } from "node:fs";
import net from "node:net";
import path from "node:path";
import { test, type TestContext } from "node:test";
import fc from "fast-check";
import { startProcess, waitFor } from "../../../tests/tools/processes.ts";
import { addressBytes } from "./ip-address.ts";
import { connectedSocket, listeningSocket, socketLookup, type SocketEnd } from "./socket-owner.ts";
import { connectionInTable, listenerInTable } from "./socket-table.ts";

const uid = process.getuid!();
const nobodyUid = 65_534;

interface Pair {
  readonly client: net.Socket;
  readonly server: net.Socket;
  /** As the server sees them. */
  readonly clientEnd: SocketEnd;
  readonly serverEnd: SocketEnd;
}

async function listen(t: TestContext, host: string, options: net.ListenOptions = {}): Promise<net.Server> {
  const server = net.createServer({ allowHalfOpen: true });
  t.after(() => server.close());
  server.listen({ host, port: 0, ...options });
  await once(server, "listening");
  return server;
}

function portOf(server: net.Server): number {
  return (server.address() as net.AddressInfo).port;
}

async function connectPair(t: TestContext, listenAt: string, connectTo: string): Promise<Pair> {
  const server = await listen(t, listenAt);
  const accepted = once(server, "connection") as Promise<[net.Socket]>;
  const client = net.connect({ host: connectTo, port: portOf(server), allowHalfOpen: true });
  const [[socket]] = await Promise.all([accepted, once(client, "connect")]);
  t.after(() => {
    client.destroy();
    socket.destroy();
  });
  const { remoteAddress, remotePort, localAddress, localPort } = socket;
  return {
    client,
    server: socket,
    clientEnd: { ip: remoteAddress!, port: remotePort! },
    serverEnd: { ip: localAddress!, port: localPort! },
  };
}

function inodeOf(socket: net.Socket | net.Server): number {
  const { fd } = (socket as unknown as { readonly _handle: { readonly fd: number } })._handle;
  return Number(/^socket:\[(\d+)\]$/.exec(readlinkSync(`/proc/self/fd/${fd}`))![1]);
}

const wire = ({ ip, port }: SocketEnd): { address: Uint8Array; port: number } => ({ address: addressBytes(ip)!, port });

/** Uid and inode, the kernel's word and the table's in one. */
function askedBothWays(own: SocketEnd, peer: SocketEnd): string {
  const answer = connectedSocket(own, peer);
  const row = connectionInTable(wire(own), wire(peer));
  const asked = typeof answer === "string" ? answer : `${answer.uid} ${answer.inode}`;
  const read = row === undefined || row.inode === 0 ? "nobody" : `${row.uid} ${row.inode}`;
  assert.equal(asked, read, "the table says otherwise");
  return asked;
}

test("the kernel can be asked here", () => {
  assert.equal(socketLookup(), "kernel");
});

const ways: readonly { readonly name: string; readonly listenAt: string; readonly connectTo: string }[] = [
  { name: "IPv4", listenAt: "127.0.0.3", connectTo: "127.0.0.3" },
  { name: "IPv6", listenAt: "::1", connectTo: "::1" },
  { name: "IPv4 at a socket of IPv6", listenAt: "::", connectTo: "127.0.0.4" },
  { name: "IPv4 from a socket of IPv6", listenAt: "127.0.0.5", connectTo: "::ffff:127.0.0.5" },
];
for (const { name, listenAt, connectTo } of ways) {
  test(`${name}: each end is found, and not the other one`, async (t) => {
    const { client, server, clientEnd, serverEnd } = await connectPair(t, listenAt, connectTo);
    assert.equal(askedBothWays(clientEnd, serverEnd), `${uid} ${inodeOf(client)}`);
    assert.equal(askedBothWays(serverEnd, clientEnd), `${uid} ${inodeOf(server)}`);
  });

  test(`${name}: a peer that has only said that it sends no more is somebody`, async (t) => {
    const { client, server, clientEnd, serverEnd } = await connectPair(t, listenAt, connectTo);
    server.resume();
    client.end();
    await once(server, "end");
    assert.equal(askedBothWays(clientEnd, serverEnd), `${uid} ${inodeOf(client)}`);
  });

  test(`${name}: a peer that has closed is nobody, before and after this end closes too`, async (t) => {
    const { client, server, clientEnd, serverEnd } = await connectPair(t, listenAt, connectTo);
    server.resume();
    client.destroy();
    await once(server, "end"); // FIN_WAIT2: the kernel's row says uid 0
    assert.equal(askedBothWays(clientEnd, serverEnd), "nobody");
    const row = connectionInTable(wire(clientEnd), wire(serverEnd));
    assert.deepEqual([row?.uid, row?.inode], [0, 0]);
    server.destroy();
    await once(server, "close"); // TIME_WAIT
    assert.equal(askedBothWays(clientEnd, serverEnd), "nobody");
  });
}

test("where no such connection is, the listener of that address does not stand for it", async (t) => {
  const server = await listen(t, "127.0.0.6");
  const at = { ip: "127.0.0.6", port: portOf(server) };
  assert.equal(askedBothWays(at, { ip: "127.0.0.1", port: 1 }), "nobody");
  assert.equal(askedBothWays({ ip: "127.0.0.6", port: 1 }, at), "nobody");
});

const listeners: readonly { readonly listenAt: string; readonly asked: string; readonly ipv6Only?: boolean }[] = [
  { listenAt: "127.0.0.7", asked: "127.0.0.7" },
  { listenAt: "0.0.0.0", asked: "127.0.0.7" },
  { listenAt: "::", asked: "127.0.0.7" },
  { listenAt: "::", asked: "::1", ipv6Only: true },
  { listenAt: "::1", asked: "::1" },
];
for (const { listenAt, asked, ipv6Only = false } of listeners) {
  test(`who listens at ${listenAt} takes connections to ${asked}`, async (t) => {
    const server = await listen(t, listenAt, { ipv6Only });
    const at = { ip: asked, port: portOf(server) };
    const answer = listeningSocket(at);
    assert.ok(typeof answer === "object");
    assert.deepEqual([answer.uid, answer.inode], [uid, inodeOf(server)]);
    assert.equal(listenerInTable(wire(at))?.inode, answer.inode);
    // The same socket, and after it another one at the same place.
    assert.deepEqual(listeningSocket(at), answer);
    await new Promise((resolve) => server.close(resolve));
    assert.equal(listeningSocket(at), "nobody");
    const next = await listen(t, listenAt, { ipv6Only, port: at.port });
    assert.notEqual((listeningSocket(at) as typeof answer).cookie, answer.cookie);
    assert.equal((listeningSocket(at) as typeof answer).inode, inodeOf(next));
  });
}

test("a socket of IPv6 alone does not stand for IPv4", async (t) => {
  const server = await listen(t, "::", { ipv6Only: true });
  // Another program may have that port of IPv4 meanwhile.
  const found = listeningSocket({ ip: "127.0.0.1", port: portOf(server) });
  assert.notEqual(typeof found === "object" && found.inode, inodeOf(server));
});

test("any number of live sockets: each has the uid and inode of the kernel's table", async (t) => {
  const address = fc.oneof(
    fc.tuple(fc.integer({ min: 1, max: 254 }), fc.integer({ min: 1, max: 254 })).map(([c, d]) => `127.9.${c}.${d}`),
    fc.constant("::1"),
  );
  for (const host of fc.sample(address, 30)) {
    const { client, clientEnd, serverEnd } = await connectPair(t, host, host);
    assert.equal(askedBothWays(clientEnd, serverEnd), `${uid} ${inodeOf(client)}`);
  }
});

test("a process that may not ask the kernel reads the table, and knows as much", async (t) => {
  const { clientEnd, serverEnd } = await connectPair(t, "127.0.0.8", "127.0.0.8");
  const owner = path.join(import.meta.dirname, "socket-owner.ts");
  const program = `
    const { connectedSocket, listeningSocket, socketLookup } = await import(${JSON.stringify(owner)});
    const [client, server] = ${JSON.stringify([clientEnd, serverEnd])};
    const { uid, inode } = connectedSocket(client, server);
    console.log(JSON.stringify([socketLookup(), uid, inode, listeningSocket(server).uid, connectedSocket(server, server)]));
  `;
  // Node's own permissions keep it from the C library.
  const args = ["--permission", "--allow-fs-read=*", "--input-type=module", "-e", program];
  await using started = await startProcess(process.execPath, args);
  const [line] = await started.waitForOutput(/^\[.*\]$/m);
  const answer = connectedSocket(clientEnd, serverEnd);
  assert.ok(typeof answer === "object");
  assert.deepEqual(JSON.parse(line), ["table", uid, answer.inode, uid, "nobody"]);
});

test("a socket of another user is that user's", async (t) => {
  if (uid !== 0) {
    t.diagnostic("only root can start a program as another user");
    return;
  }
  const server = await listen(t, "127.0.0.9");
  const accepted = once(server, "connection") as Promise<[net.Socket]>;
  const program = `process.setuid(${nobodyUid}); require("node:net").connect(${portOf(server)}, "127.0.0.9")`;
  await using _started = await startProcess(process.execPath, ["-e", program]);
  const [socket] = await accepted;
  t.after(() => socket.destroy());
  const { remoteAddress, remotePort, localAddress, localPort } = socket;
  const own = { ip: remoteAddress!, port: remotePort! };
  const asked = await waitFor(() => askedBothWays(own, { ip: localAddress!, port: localPort! }), { what: "an answer" });
  assert.match(asked, new RegExp(`^${nobodyUid} [1-9]`));
});
