// A control plane that may open no more files: it refuses newcomers, says so once, goes on with the proxies that it has
// and the people who ask it, and takes newcomers again by itself.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import net from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import tls from "node:tls";
import { test } from "node:test";
import { isDeepStrictEqual, promisify } from "node:util";
import { startProcess, waitFor } from "../tools/processes.ts";
import { socketRequest } from "../tools/socket-request.ts";
import { rollOut } from "./replicated-shop.ts";
import { ShopInstance } from "./shop-instance.ts";

const entry = path.resolve(import.meta.dirname, "../../packages/cli/src/main.ts");
const maxDescriptors = 128;
const refusal = "connections are refused: too many files are open";

interface Ports {
  /** Where its proxies connect. */
  readonly xds: net.TcpNetConnectOpts;
  /** Its API, of which everybody reaches a little. */
  readonly api: net.TcpNetConnectOpts;
}

/** Replaces the control plane by one with few descriptors. */
async function restartCrowded(shop: ShopInstance, log: () => Promise<string>): Promise<Ports> {
  const supervisor = shop.up.child.pid!;
  const logged = (await log()).length;
  const proxies = await proxiesOf(shop);
  const before = (await shop.processes()).get("control-plane")!;
  // For it and for all that it starts from now on.
  await promisify(execFile)("prlimit", ["--pid", String(supervisor), `--nofile=${maxDescriptors}`]);
  process.kill(before, "SIGTERM");
  const find = async (): Promise<RegExpExecArray | null> =>
    / xdsTls=([\d.]+):(\d+) http=[\d.]+:(\d+)/.exec((await log()).slice(logged));
  const [, host, xdsPort, apiPort] = await waitFor(find, {
    what: "another control plane",
    intervalMs: 100,
  });
  await waitFor(async () => isDeepStrictEqual(await proxiesOf(shop), proxies), {
    what: "every proxy to come back",
  });
  await shop.waitForSync();
  return { xds: { host: host!, port: Number(xdsPort) }, api: { host: host!, port: Number(apiPort) } };
}

async function proxiesOf(shop: ShopInstance): Promise<readonly string[]> {
  return (await shop.syncRows()).map(({ proxy }) => proxy);
}

/** Who has proved nothing: half of them say nothing to the API, half have shaken hands with the port of the proxies. */
async function strangers({ xds, api }: Ports, count: number): Promise<Set<net.Socket>> {
  const open = new Set<net.Socket>();
  for (let begun = 0; begun < count; begun += 1) {
    const isXds = begun % 2 === 1;
    const socket = isXds ? tls.connect({ ...xds, rejectUnauthorized: false, ALPNProtocols: ["h2"] }) : net.connect(api);
    await settled(open, socket, isXds ? "secureConnect" : "connect");
  }
  return open;
}

/** The owner's own: watches, each on a connection that has shown the token. */
async function watchers({ api }: Ports, token: string, count: number): Promise<Set<net.Socket>> {
  const open = new Set<net.Socket>();
  for (let begun = 0; begun < count; begun += 1) {
    const socket = tls.connect({ ...api, rejectUnauthorized: false });
    socket.write(
      `GET /api/v1/watch?kinds=Secret HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${token}\r\n\r\n`,
    );
    await settled(open, socket, "data");
  }
  return open;
}

/** It has got as far as `event`, or is closed and no longer in `open`. */
async function settled(open: Set<net.Socket>, socket: net.Socket, event: string): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  open.add(socket);
  socket.once(event, () => resolve()).resume();
  socket.on("error", () => undefined);
  socket.on("close", () => {
    open.delete(socket);
    resolve();
  });
  await promise;
}

test("a control plane without descriptors refuses newcomers, says so once, pushes, and recovers", async () => {
  await using shop = await ShopInstance.start({ without: ["productpage.yaml"] });
  const log = (): Promise<string> => readFile(path.join(shop.folder, ".tulle", "logs", "control-plane.log"), "utf8");
  const ports = await restartCrowded(shop, log);
  const controlPlane = (await shop.processes()).get("control-plane");
  const proxies = await proxiesOf(shop);
  assert.ok(proxies.length > 0);

  const nobody = await strangers(ports, 2 * maxDescriptors);
  try {
    await shop.applyRule("2-everything-to-v1");
    assert.ok(nobody.size <= maxDescriptors / 2, `${nobody.size} strangers are connected`);
    assert.ok(!(await log()).includes(refusal), "who has proved nothing uses the descriptors of nobody else");
  } finally {
    for (const socket of nobody) socket.destroy();
  }

  const token = (await readFile(path.join(shop.folder, ".tulle", "token"), "utf8")).trim();
  const crowd = await watchers(ports, token, maxDescriptors);
  try {
    assert.ok(crowd.size < maxDescriptors, "newcomers are refused");
    await shop.applyRule("3-dark-launch-v2");
    assert.deepEqual(await proxiesOf(shop), proxies, "the proxies that it had");
  } finally {
    for (const socket of crowd) socket.destroy();
  }

  await rollOut(shop, { name: "webapp", namespace: "shop" });
  await shop.waitForSync();
  assert.equal((await log()).split(refusal).length, 2, await log());
  assert.equal((await shop.processes()).get("control-plane"), controlPlane, "it went on");
});

test("connections that say nothing to a port without TLS use up nobody's descriptors", async (context) => {
  const folder = await mkdtemp(path.join(tmpdir(), "tulle-no-tls-"));
  context.after(() => rm(folder, { recursive: true }));
  const state = path.join(folder, "state");
  const ports = ["--xds", "127.0.0.1:0", "--http", "127.0.0.1:0"];
  const line = [entry, "control-plane", "--manifests", folder, "--state", state, ...ports];
  await using controlPlane = await startProcess("prlimit", [`--nofile=${maxDescriptors}`, process.execPath, ...line], {
    name: "tulle control-plane",
  });
  const [, host, port] = await controlPlane.waitForOutput(/ xds=([\d.]+):(\d+) /);
  const open = new Set<net.Socket>();
  context.after(() => open.forEach((socket) => socket.destroy()));
  for (let begun = 0; begun < 2 * maxDescriptors; begun += 1) {
    await settled(open, net.connect({ host: host!, port: Number(port) }), "connect");
  }
  await waitFor(() => open.size <= maxDescriptors / 8, { what: "the oldest to make way" });
  assert.ok(open.size > 0, "the newest stay for a while");
  const answer = await socketRequest(path.join(state, "control-plane.sock"), "/api/v1/findings");
  assert.equal(answer.status, 200);
});
