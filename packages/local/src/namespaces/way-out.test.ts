// The way out of the mesh's network, in networks of the test's own: a pod behind the fabric, and a machine with the
// world behind it, which have no link between them.
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type Server, type Socket } from "node:net";
import { buffer } from "node:stream/consumers";
import { after, before, test } from "node:test";
import { metadataServers, NetworkNamespace } from "@tulle/capture";
import { debianTool } from "../../../../tests/tools/debian-tool.ts";
import { waitFor } from "../../../../tests/tools/processes.ts";
import { ToolUnavailable } from "../../../../tests/tools/tool-unavailable.ts";
import { ipBatch } from "./ip-batch.ts";
import { MachineNetwork } from "./machine-network.ts";
import { WayOut } from "./way-out.ts";

const open = new AsyncDisposableStack();
const port = 7000;
const networks: Record<"pod" | "fabric" | "machine" | "world", NetworkNamespace> = Object.create(null);

async function listenIn(network: NetworkNamespace, onConnection: (socket: Socket) => void): Promise<Server> {
  const server = createServer({ allowHalfOpen: true }, onConnection);
  network.within(() => server.listen(port));
  await once(server, "listening");
  open.defer(() => void server.close());
  return server;
}

before(async () => {
  if (process.getuid?.() !== 0) throw new ToolUnavailable("network namespaces", "it takes root to make them");
  for (const name of ["iproute2", "nftables"] as const) await debianTool(name);
  for (const name of ["pod", "fabric", "machine", "world"] as const)
    networks[name] = open.use(NetworkNamespace.create());
  const { pod, fabric, machine, world } = networks;
  for (const network of Object.values(networks)) await ipBatch(network, ["link set lo up"]);
  await ipBatch(fabric, [
    `link add machines type veth peer name eth0 netns ${pod.path}`,
    "link set machines up",
    "address add 10.244.0.1/24 dev machines",
    "address add fd00:10:244::1/64 dev machines nodad",
  ]);
  await ipBatch(pod, [
    "link set eth0 up",
    "address add 10.244.0.2/24 dev eth0",
    "address add fd00:10:244::2/64 dev eth0 nodad",
    "route add default via 10.244.0.1",
    "route add ::/0 via fd00:10:244::1",
  ]);
  await ipBatch(machine, [
    `link add eth0 type veth peer name eth0 netns ${world.path}`,
    "link set eth0 up",
    "address add 203.0.113.2/24 dev eth0",
    "address add 2001:db8::2/64 dev eth0 nodad",
    ...metadataServers.map((each) => `route add ${each} via ${each.includes(":") ? "2001:db8::1" : "203.0.113.1"}`),
    "address add 169.254.0.2/16 dev eth0",
    // As a container engine's, without containers: no carrier.
    "link add docker0 type bridge",
    "link set docker0 up",
    "address add 172.17.0.1/16 dev docker0",
    "route add local 192.0.2.0/24 dev lo",
  ]);
  await ipBatch(world, [
    "link set eth0 up",
    "address add 203.0.113.1/24 dev eth0",
    "address add 2001:db8::1/64 dev eth0 nodad",
    "address add 169.254.169.254/16 dev eth0",
    ...metadataServers.map((each) => `address add ${each}/${each.includes(":") ? "128" : "32"} dev lo`),
  ]);
  const inside = { ipv4: ["10.244.0.0/24"], ipv6: ["fd00:10:244::/64"] };
  const machineNetwork = open.use(new MachineNetwork(machine));
  open.use(await WayOut.open({ machine: machineNetwork, fabric, device: "machines", inside, connectionsOfPod: 8 }));
  // How much it has heard, once it has heard the end.
  await listenIn(world, (socket) => {
    let heardBytes = 0;
    socket.on("data", (chunk) => void (heardBytes += chunk.length));
    socket.on("end", () => socket.end(`${socket.remoteAddress} ${heardBytes}`));
  });
  await listenIn(machine, (socket) => void socket.end("of the machine"));
  await listenIn(fabric, (socket) => void socket.end("of the mesh"));
});
after(() => open.disposeAsync());

async function call(host: string, to = port, said: string | Buffer = "hello"): Promise<string> {
  const socket = networks.pod.connect({ host, port: to, allowHalfOpen: true });
  socket.end(said);
  try {
    return (await buffer(socket)).toString();
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? "";
  }
}

for (const [host, from] of [
  ["203.0.113.1", "::ffff:203.0.113.2"],
  ["2001:db8::1", "2001:db8::2"],
] as const) {
  test(`a pod calls the world from the machine's address: ${host}`, async () => {
    assert.equal(await call(host), `${from} 5`);
    assert.equal(await call(host, port, Buffer.alloc(3_000_000)), `${from} 3000000`);
  });
}

test("what is of the mesh goes where it is sent", async () => {
  assert.equal(await call("10.244.0.1"), "of the mesh");
  assert.equal(await call("fd00:10:244::1"), "of the mesh");
});

test("a pod reaches no server of the machine", async () => {
  for (const host of ["203.0.113.2", "2001:db8::2", "172.17.0.1", "192.0.2.7"])
    assert.equal(await call(host), "ECONNRESET", host);
  for (const host of ["169.254.0.1", "::ffff:127.0.0.1", "0.0.0.0"])
    assert.match(await call(host), /^(E[A-Z]+)$/, host);
});

test("a pod reaches no server of the machine's links, which would take it for the machine", async () => {
  for (const host of ["169.254.169.254", ...metadataServers]) assert.equal(await call(host), "ECONNRESET", host);
});

test("a host that refuses, or that nobody can reach, ends the connection", async () => {
  assert.equal(await call("203.0.113.1", port + 1), "ECONNRESET");
  assert.equal(await call("198.51.100.1"), "ECONNRESET");
});

test("nobody gets in by dialling the port of the way out", async () => {
  const { fabric } = networks;
  const listening = fabric.within(() =>
    process.getBuiltinModule("node:fs").readFileSync("/proc/thread-self/net/tcp6", "utf8"),
  );
  const ports = [...listening.matchAll(/^ *\d+: 0{32}:([0-9A-F]{4}) 0{32}:0000 0A/gm)].map(([, hex]) =>
    parseInt(hex!, 16),
  );
  const [own] = ports.filter((each) => each !== port);
  assert.ok(own);
  assert.equal(await call("10.244.0.1", own), "ECONNREFUSED");
});

test("a pod has so many connections and no more, and those that end make room", async () => {
  const connect = (): Socket => networks.pod.connect({ host: "203.0.113.1", port, allowHalfOpen: true });
  const held = Array.from({ length: 8 }, connect);
  for (const socket of held) socket.write("x");
  await Promise.all(held.map((socket) => once(socket, "connect")));
  assert.equal(await call("203.0.113.1"), "ECONNRESET");
  // By its other address it is another one.
  assert.equal(await call("2001:db8::1"), "2001:db8::2 5");
  for (const socket of held) socket.end();
  await Promise.all(held.map((socket) => buffer(socket)));
  await waitFor(async () => (await call("203.0.113.1")) === "::ffff:203.0.113.2 5", { what: "room" });
});
