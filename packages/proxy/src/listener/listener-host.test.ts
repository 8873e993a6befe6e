// Listeners on real sockets: binding and its failures, replacement in place, removal, draining, inherited descriptors.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import net from "node:net";
import { test, type TestContext } from "node:test";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { Logging } from "@tulle/telemetry";
import { parseListenDescriptors } from "@tulle/listening";
import { DataPath } from "../worker/data-path.ts";
import { handBuiltConnectionManager, handBuiltListener, prefixRoutes } from "../testing/hand-built-runtime.ts";
import { Client, runProxy, until } from "../testing/running-proxy.ts";
import type { Listener } from "./listener.ts";
import { freeAddressBlock, freePort } from "../../../../tests/tools/processes.ts";
import { ListenerHost } from "./listener-host.ts";

const get = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";

function directListener(body: string, port = 0, name = "hand-built"): Listener {
  const action = { type: "direct", status: 200, body: Buffer.from(body), finalizeResponse: () => undefined } as const;
  const routes = prefixRoutes({ "/": action });
  return handBuiltListener(handBuiltConnectionManager(routes, { log: () => undefined }), port, name);
}

function newHost(descriptors = ""): ListenerHost {
  return new ListenerHost({
    dataPath: new DataPath({ logging: new Logging({ level: "off" }) }),
    inheritedDescriptors: parseListenDescriptors(descriptors),
  });
}

const portOf = (host: ListenerHost, name = "hand-built"): number => host.boundAddresses().get(name)![0]!.port;

test("an occupied port is a reason and no exception, and frees what was bound with it", async (t) => {
  const blocker = net.createServer();
  await new Promise<void>((resolve) => blocker.listen(0, "127.0.0.1", resolve));
  t.after(() => blocker.close());
  const { port } = blocker.address() as net.AddressInfo;
  const host = newHost();
  t.after(() => host.stop());
  const listener = {
    ...directListener("x"),
    addresses: [
      { ip: "127.0.0.1", port: 0 },
      { ip: "127.0.0.1", port },
    ],
  };
  assert.equal(await host.apply(listener), `cannot bind '127.0.0.1:${port}': Address already in use`);
  assert.equal(host.boundAddresses().size, 0);
});

for (const takesIpv4 of [false, true]) {
  test(`:: takes ${takesIpv4 ? "IPv4 too with ipv4_compat" : "IPv6 alone"}`, async (t) => {
    const host = newHost();
    t.after(() => host.stop());
    const listener = { ...directListener("of all addresses"), addresses: [{ ip: "::", port: 0, takesIpv4 }] };
    assert.equal(await host.apply(listener), undefined);
    const port = portOf(host);
    const answers = await Promise.all(["::1", "127.0.0.1"].map((ip) => answerOf(ip, port)));
    const reached = answers.map((answer) => answer.endsWith("of all addresses"));
    assert.deepEqual(reached, [true, takesIpv4]);
  });
}

/** Empty where nobody listens; another program may have the port on that address. */
function answerOf(host: string, port: number): Promise<string> {
  return new Promise((resolve) => {
    let text = "";
    const socket = net.connect({ host, port }, () =>
      socket.end("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"),
    );
    socket.on("data", (chunk) => (text += chunk.toString())).on("error", () => undefined);
    socket.once("close", () => resolve(text));
  });
}

test("new filter chains go in place; open connections keep theirs for one more answer", async (t) => {
  const host = newHost();
  t.after(() => host.stop());
  assert.equal(await host.apply(directListener("one")), undefined);
  const port = portOf(host);
  const client = await Client.connect(t, port);
  client.send(get);
  await client.receive(/one$/);
  assert.equal(await host.apply(directListener("two")), undefined);
  assert.equal(portOf(host), port);
  client.send(get);
  assert.match(await client.receiveEnd(), /connection: close\r\n\r\none$/);
  const next = await Client.connect(t, port);
  next.send(get);
  await next.receive(/two$/);
});

test("a listener that moves keeps the addresses that stay", async (t) => {
  const host = newHost();
  t.after(() => host.stop());
  await host.apply(directListener("one"));
  const [stays] = host.boundAddresses().get("hand-built")!;
  const moved = {
    ...directListener("two"),
    addresses: [
      { ip: "127.0.0.1", port: 0 },
      { ip: "127.0.0.2", port: 0 },
    ],
  };
  assert.equal(await host.apply(moved), undefined);
  const addresses = host.boundAddresses().get("hand-built")!;
  assert.deepEqual(addresses[0], stays);
  assert.equal(addresses[1]!.ip, "127.0.0.2");
});

test("removal stops accepting, lets the answer in hand go out and cuts the rest", async (t) => {
  const host = newHost();
  t.after(() => host.stop());
  await host.apply(directListener("one"));
  const port = portOf(host);
  const client = await Client.connect(t, port);
  client.send(get);
  await client.receive(/one$/);
  const silent = await Client.connect(t, port);
  await until(
    () => host.activeConnections === 2,
    () => "both connections",
  );
  host.remove("hand-built", 50);
  client.send(get);
  assert.match(await client.receiveEnd(), /connection: close/);
  await silent.receiveEnd();
  await until(
    () => host.activeConnections === 0,
    () => "no connection",
  );
  await assert.rejects(Client.connect(t, port));
});

test("draining a process resolves when nothing is left", async (t) => {
  const host = newHost();
  t.after(() => host.stop());
  await host.apply(directListener("one"));
  await host.drain({ leastMs: 0, mostMs: 10_000 });
  const client = await Client.connect(t, portOf(host));
  client.send(get);
  assert.match(await client.receiveEnd(), /connection: close/);
});

interface Inheritor {
  said(): string;
  warnings(): string;
  drain(): void;
}

interface InheritorAddress {
  readonly ip: string;
  readonly port: number;
}

/** A process that listens at an address, inherits `descriptors` for its port, and accepts. */
async function inheritor(
  t: TestContext,
  descriptors: readonly number[],
  answer: string,
  { ip, port }: InheritorAddress,
): Promise<Inheritor> {
  const program = new URL("../testing/inherited-listener-program.ts", import.meta.url).pathname;
  const child = spawn(process.execPath, [program, answer, ip, String(port)], {
    stdio: ["pipe", "pipe", "pipe", ...descriptors],
    env: { ...process.env, TULLE_LISTEN_FDS: descriptors.map((_, index) => `${port}=${index + 3}`).join(",") },
  });
  t.after(() => child.stdin!.end());
  let said = "";
  child.stdout!.on("data", (data) => (said += String(data)));
  let warnings = "";
  child.stderr!.on("data", (data) => (warnings += String(data)));
  await until(
    () => said !== "",
    () => "the other process",
  );
  return { said: () => said, warnings: () => warnings, drain: () => child.stdin!.write("drain") };
}

interface Parent extends InheritorAddress {
  readonly descriptor: number;
  /** A Node server takes connections too; the real supervisor holds the sockets without polling them. */
  leave(): Promise<unknown>;
}

async function parentSocket(ip = "127.0.0.1"): Promise<Parent> {
  const server = net.createServer();
  await new Promise<void>((resolve) => server.listen(0, ip, resolve));
  const { port } = server.address() as net.AddressInfo;
  const { fd: descriptor } = (server as unknown as { _handle: { fd: number } })._handle;
  return { ip, port, descriptor, leave: () => new Promise((resolve) => server.close(resolve)) };
}

test("inherited sockets accept beside the listener's own address", async (t) => {
  const parents = [await parentSocket(), await parentSocket()];
  const own = { ip: `${await freeAddressBlock()}.1`, port: await freePort() };
  const descriptors = parents.map(({ descriptor }) => descriptor);
  const accepting = await inheritor(t, descriptors, "inherited", own);
  assert.equal(accepting.said(), "accepting");
  for (const parent of parents) await parent.leave();
  for (const { ip, port } of [...parents, own]) assert.match(await answerOf(ip, port), /inherited$/, `${ip}:${port}`);
});

const overlapping = [
  { name: "that very address", parent: "127.0.0.1", own: "127.0.0.1" },
  { name: "every address", parent: "0.0.0.0", own: "127.0.0.1" },
  { name: "one of every address", parent: "127.0.0.1", own: "0.0.0.0" },
];
for (const { name, parent: ip, own } of overlapping) {
  test(`an inherited socket takes the place of what it is in the way of: ${name}`, async (t) => {
    const parent = await parentSocket(ip);
    const accepting = await inheritor(t, [parent.descriptor], "inherited", { ip: own, port: parent.port });
    assert.equal(accepting.said(), "accepting");
    await parent.leave();
    assert.match(await answerOf("127.0.0.1", parent.port), /inherited$/);
    assert.equal(accepting.warnings(), "");
  });
}

test("somebody else at the listener's own address is told, and keeps nobody from inherited sockets", async (t) => {
  const parent = await parentSocket();
  const blocker = await parentSocket(`${await freeAddressBlock()}.1`);
  t.after(() => blocker.leave());
  const accepting = await inheritor(t, [parent.descriptor], "inherited", blocker);
  await until(
    () => accepting.warnings().includes(`cannot bind '${blocker.ip}:${blocker.port}': Address already in use`),
    () => `the reason: ${accepting.warnings()}`,
  );
  assert.equal(accepting.said(), "accepting");
  await parent.leave();
  assert.match(await answerOf(parent.ip, parent.port), /inherited$/);
});

test("a process that drains leaves an inherited socket to the others that have it", async (t) => {
  const parent = await parentSocket();
  const { port } = parent;
  const [address, own] = [`${await freeAddressBlock()}.1`, await freePort()];
  const leaving = await inheritor(t, [parent.descriptor], "leaving", { ip: address, port: own });
  const staying = await inheritor(t, [parent.descriptor], "staying", { ip: "127.0.0.1", port: own });
  await parent.leave();
  leaving.drain();
  await until(
    () => leaving.said() === "accepting, drained",
    () => "the end of draining",
  );
  for (let count = 0; count < 50; count += 1) {
    const client = await Client.connect(t, port);
    client.send(get);
    await client.receive(/staying$/);
  }
  assert.equal(staying.said(), "accepting");
});

test("a listener that is removed while the process drains ends both waits", async (t) => {
  const host = newHost();
  t.after(() => host.stop());
  await host.apply(directListener("one"));
  const client = await Client.connect(t, portOf(host));
  await until(
    () => host.activeConnections === 1,
    () => "the connection",
  );
  let drained = false;
  void host.drain({ leastMs: 0, mostMs: 10_000 }).then(() => (drained = true));
  host.remove("hand-built", 10_000);
  client.socket.destroy();
  await until(
    () => drained,
    () => "the end of draining",
  );
});

test("a listener that goes while its address is being bound does not stay", async (t) => {
  const host = newHost();
  t.after(() => host.stop());
  for (const go of [(): void => host.remove("hand-built", 1000), (): unknown => host.stop()]) {
    const applied = host.apply(directListener("one"));
    await Promise.resolve();
    go();
    assert.match((await applied) ?? "", /removed while/);
    assert.equal(host.boundAddresses().size, 0);
  }
});

test("TULLE_LISTEN_FDS", () => {
  assert.deepEqual(
    [...parseListenDescriptors("8080=3,8443=4,8080=5")],
    [
      [8080, [3, 5]],
      [8443, [4]],
    ],
  );
  assert.deepEqual([...parseListenDescriptors(undefined)], []);
  assert.throws(() => parseListenDescriptors("8080"), /expected <port>=<descriptor>, got "8080"/);
});

test("a connection that no filter chain takes is closed and counted", async (t) => {
  const proxy = await runProxy(t, { routes: {} });
  const listener = handBuiltListener(proxy.config, 0, "picky");
  const picky = { ...listener, findChain: () => undefined };
  await proxy.host.apply(picky);
  const client = await Client.connect(t, proxy.host.boundAddresses().get("picky")![0]!.port);
  await client.receiveEnd();
  assert.equal(picky.stats.noFilterChainMatch.value, 1);
});

test("what former chains were made of goes with their last connections, long before the time to drain is over", async (t) => {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  const host = newHost();
  t.after(() => host.stop());
  const former: WeakRef<object>[] = [];
  for (let version = 0; version < 10; version += 1) {
    const listener = directListener(`answer ${version}`);
    former.push(new WeakRef(listener.filterChains[0]!.network));
    assert.equal(await host.apply(listener), undefined);
    const client = await Client.connect(t, portOf(host));
    client.send(get);
    await client.receive(/answer \d$/);
    assert.equal(await host.apply(directListener("between")), undefined);
    client.send(get);
    await client.receiveEnd();
    client.socket.destroy();
    await until(
      () => host.activeConnections === 0,
      () => "the end of the connection",
    );
  }
  await until(
    () => {
      collect();
      return former.filter((network) => network.deref() !== undefined).length <= 1;
    },
    () => `${former.filter((network) => network.deref() !== undefined).length} versions to be forgotten`,
  );
});
