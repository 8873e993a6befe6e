// Connections to hosts whose address a program of another user may have taken: nothing is sent to such a program, not
// even a ClientHello.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import net from "node:net";
import { test, type TestContext } from "node:test";
import tls from "node:tls";
import { listeningSocket, type SocketOwner } from "@tulle/capture";
import { Logging } from "@tulle/telemetry";
import { freePort, startProcess, waitFor, type StartedProcess } from "../../../../tests/tools/processes.ts";
import { DataPath } from "../worker/data-path.ts";
import { handBuiltCluster } from "../testing/hand-built-runtime.ts";
import { verifiedEvent } from "../tls/ready-event.ts";
import type { Cluster } from "../cluster/cluster.ts";
import { Slot } from "../runtime/slot.ts";
import { grpcStreamOpener } from "../upstream/grpc-stream.ts";
import { OwnUserHosts, otherUsersHost } from "./own-user-hosts.ts";

const range = "127.77.0.0/16";
const isRoot = process.getuid?.() === 0;

interface Listening {
  readonly port: number;
  readonly program: StartedProcess;
}

/** Says how many bytes it has got from each connection, when that is over. */
async function listenAs(t: TestContext, uid: number, host: string, port = 0, onAccept = ""): Promise<Listening> {
  const script = `
    process.setgroups?.([]); process.setuid(${uid});
    const server = require("node:net").createServer((socket) => {
      ${onAccept}
      let bytes = 0;
      socket.on("data", (chunk) => (bytes += chunk.length)).on("error", () => {}).on("close", () => console.log("got " + bytes));
    });
    server.listen(${port}, ${JSON.stringify(host)}, () => console.log("port " + server.address().port));`;
  const program = await startProcess(process.execPath, ["-e", script]);
  t.after(() => program.stop());
  const [, at] = await program.waitForOutput(/^port (\d+)$/m);
  return { port: Number(at), program };
}

/** `sent` once the host was found good and bytes went out, else the error's code. */
async function sending(
  hosts: OwnUserHosts,
  to: { readonly ip: string; readonly port: number },
  isTls = false,
): Promise<string> {
  const target = { host: to.ip, port: to.port };
  const socket = isTls ? tls.connect({ ...target, rejectUnauthorized: false }) : net.connect(target);
  hosts.watch(socket, to);
  return outcomeOf(socket);
}

function outcomeOf(socket: net.Socket): Promise<string> {
  const { promise, resolve } = Promise.withResolvers<string>();
  socket.once(verifiedEvent, () => socket.end("a token", () => resolve("sent")));
  socket.once("error", (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
  return promise;
}

const ownerIdOf = (owner: SocketOwner): number => (typeof owner === "object" ? owner.uid : -1);
const starterOf = (program: StartedProcess): number => program.pid;

test("a program of this user gets what is sent, also one that listens at all addresses", async (t) => {
  const hosts = new OwnUserHosts(range, { warning: (message) => assert.fail(message) });
  for (const host of ["127.77.0.1", "0.0.0.0", "::"]) {
    const { port, program } = await listenAs(t, process.getuid!(), host);
    assert.equal(await sending(hosts, { ip: "127.77.0.1", port }), "sent");
    await program.waitForOutput(/^got 7$/m);
  }
});

test("hosts elsewhere are not looked at", () => {
  const hosts = new OwnUserHosts(range, { warning: (message) => assert.fail(message) });
  const socket = new net.Socket();
  hosts.watch(socket, { ip: "127.78.0.1", port: 1 });
  assert.equal(socket.listenerCount("connect"), 0);
});

test("a host that closes its listener when it has the connection is still the one", async (t) => {
  const server = net.createServer((socket) => void server.close(() => undefined).once("close", () => socket.end()));
  t.after(() => server.close());
  server.listen(0, "127.77.0.5");
  await once(server, "listening");
  const { port } = server.address() as net.AddressInfo;
  const to = { ip: "127.77.0.5", port };
  const socket = net.connect({ host: to.ip, port });
  t.after(() => socket.destroy());
  new OwnUserHosts(range, { warning: (message) => assert.fail(message) }).watch(socket, to);
  await once(socket, verifiedEvent);
});

if (isRoot) {
  for (const { name, host, isTls } of [
    { name: "at the host's address", host: "127.77.0.2", isTls: false },
    { name: "at all addresses", host: "0.0.0.0", isTls: false },
    { name: "where TLS is spoken", host: "127.77.0.2", isTls: true },
  ]) {
    test(`a program of another user ${name} gets nothing`, async (t) => {
      const elsewhere = await startProcess("sleep", ["60"]);
      t.after(() => elsewhere.stop());
      const told: unknown[] = [];
      const hosts = new OwnUserHosts(
        range,
        { warning: (_message, fields) => void told.push(fields) },
        starterOf(elsewhere),
      );
      const { port, program } = await listenAs(t, 65_534, host);
      const to = { ip: "127.77.0.2", port };
      assert.deepEqual(await Promise.all([sending(hosts, to, isTls), sending(hosts, to, isTls)]), [
        otherUsersHost,
        otherUsersHost,
      ]);
      await waitFor(() => program.output().match(/got 0/g)?.length === 2, { what: "both connections to end" });
      assert.deepEqual(told, [{ host: `127.77.0.2:${port}`, uid: 65_534, times: 1 }]);
    });
  }

  test("one in a control plane's place gets no preface of HTTP/2", async (t) => {
    const elsewhere = await startProcess("sleep", ["60"]);
    t.after(() => elsewhere.stop());
    const { port, program } = await listenAs(t, 65_534, "127.0.0.1");
    const log = { warning: () => undefined };
    const dataPath = Object.assign(new DataPath({ logging: new Logging({ level: "off" }) }), {
      ownUserHosts: new OwnUserHosts("127.0.0.1/32", log, starterOf(elsewhere)),
    });
    const cluster = handBuiltCluster("xds", [port]);
    const slot = Object.assign(new Slot<Cluster>("xds"), { current: cluster });
    const target = { clusterName: "xds", authority: "a", metadata: [], maxMessageBytes: undefined };
    const { promise: end, resolve: onEnd } = Promise.withResolvers<string>();
    grpcStreamOpener(
      slot,
      target,
      "/a.B/C",
      dataPath,
    )({ onOpen: () => assert.fail(), onMessage: () => assert.fail(), onEnd });
    assert.match(await end, /: a program of another user answers at /);
    await program.waitForOutput(/^got 0$/m);
  });

  test("one that takes the address over while the connection is being made gets nothing", async (t) => {
    const elsewhere = await startProcess("sleep", ["60"]);
    t.after(() => elsewhere.stop());
    // Both listen there, one after the other: nobody else may have the port meanwhile.
    const own = await listenAs(t, 0, "127.77.0.3", await freePort("127.77.0.3"));
    const to = { ip: "127.77.0.3", port: own.port };
    const socket = new net.Socket();
    t.after(() => socket.destroy());
    new OwnUserHosts(range, { warning: () => undefined }, starterOf(elsewhere)).watch(socket, to);
    await own.program.stop();
    const { program } = await listenAs(t, 65_534, to.ip, to.port);
    socket.connect(to.port, to.ip);
    assert.equal(await outcomeOf(socket), otherUsersHost);
    await program.waitForOutput(/^got 0$/m);
  });

  test("one that has the connection when this user's program takes the address gets nothing", async (t) => {
    const elsewhere = await startProcess("sleep", ["60"]);
    t.after(() => elsewhere.stop());
    const { port, program } = await listenAs(t, 65_534, "127.77.0.6", await freePort("127.77.0.6"), "server.close();");
    const to = { ip: "127.77.0.6", port };
    const socket = net.connect({ host: to.ip, port });
    t.after(() => socket.destroy());
    new OwnUserHosts(range, { warning: () => undefined }, starterOf(elsewhere)).watch(socket, to);
    const script = `require("node:net").createServer(() => process.exit(1)).listen(${port}, "${to.ip}")`;
    const own = spawn(process.execPath, ["-e", script], { stdio: "inherit" });
    t.after(() => own.kill("SIGKILL"));
    process.nextTick(() => {
      // The connection has been begun, and nothing is heard of it before this is over.
      const end = performance.now() + 60_000;
      while (ownerIdOf(listeningSocket(to)) !== 0) assert.ok(performance.now() < end, "this user's program listens");
    });
    assert.equal(await outcomeOf(socket), otherUsersHost);
    await program.waitForOutput(/^got 0$/m);
    assert.equal(own.exitCode, null, "the connection is another program's");
  });

  test("what root has started here and runs as another user is ours", async (t) => {
    const hosts = new OwnUserHosts(range, { warning: (message) => assert.fail(message) }, process.pid);
    const { port, program } = await listenAs(t, 65_534, "127.77.0.4");
    assert.equal(await sending(hosts, { ip: "127.77.0.4", port }), "sent");
    await program.waitForOutput(/^got 7$/m);
  });
}
