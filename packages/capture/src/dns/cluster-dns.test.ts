// The name server of a cluster as pods ask it: by the address of kube-dns, through their nodes' rules, by the resolver
// of the C library with the resolv.conf that pods have.
import assert from "node:assert/strict";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { connect, createServer } from "node:net";
import path from "node:path";
import { after, test } from "node:test";
import packet from "dns-packet";
import { MetricRegistry } from "@tulle/telemetry";
import { startProcess } from "../../../../tests/tools/processes.ts";
import { NetworkNamespace } from "../../../../tests/tools/network-namespace.ts";
import { temporaryFolder } from "../../../../tests/tools/temporary-folder.ts";
import { clusterDnsObjects } from "../services/cluster-dns-objects.ts";
import { serviceNames } from "../services/service-names.ts";
import { ServiceNetwork } from "../services/service-network.ts";
import { addressAnswer, exchange, query } from "../testing/name-servers.ts";
import { datagramSocket, machine, NodeNetwork, podAddress, type PodName } from "../testing/node-network.ts";
import { clusterRanges, service, serviceNodes, slices } from "../testing/services.ts";
import { ClusterDns } from "./cluster-dns.ts";
import { openSocket } from "../kernel.ts";
import { LengthPrefixed, withLength } from "./length-prefixed.ts";
import { podResolverFile } from "./pod-resolver-file.ts";

const network = await NodeNetwork.open();
const nodes = serviceNodes.map((node) => ({ ...node, prefix: network.nodes[node.name].enter }));
const failures: string[] = [];
const services = new ServiceNetwork({ nodes, clusterRanges, onFailure: (_, message) => failures.push(message) });
after(() => services.close());

const ready = { ready: true };
const dns = clusterDnsObjects({
  addresses: ["10.96.0.10", "fd96::a"],
  servers: [machine.fabric[4], machine.fabric[6]].map((address) => ({ address, port: 53 })),
});
const endpointSlices = [
  ...slices("catalog", { one: ready, two: ready }),
  ...slices("peers", { two: ready, three: ready }),
  ...dns.endpointSlices,
];
const all = [
  dns.service,
  service("catalog", { clusterIPs: ["10.96.0.77", "fd96::77"] }),
  service("peers", { clusterIP: "None" }),
];
services.update({ services: all, endpointSlices });
await services.settled();
const entries = serviceNames({ services: all, endpointSlices, serviceDomain: "svc.cluster.local" });

// Sockets of this process are made in the fabric, as the supervisor's are; the machine's server is elsewhere.
const modules = ["cluster-dns.ts", "../testing/name-servers.ts"].map((name) => new URL(name, import.meta.url).href);
const program = `
  const { ClusterDns } = await import(${JSON.stringify(modules[0])});
  const { addressAnswer } = await import(${JSON.stringify(modules[1])});
  const { createSocket } = await import("node:dgram");
  const { MetricRegistry } = await import("@tulle/telemetry");
  const machine = createSocket("udp4");
  machine.on("message", (message, { port, address }) => machine.send(addressAnswer(message, "198.51.100.1"), port, address));
  machine.bind(5353, "127.0.0.1");
  const forwarding = () => ({ servers: [{ address: "127.0.0.1", port: 5353 }], timeoutMs: 30_000, attempts: 1 });
  const dns = new ClusterDns({ forwarding, metrics: new MetricRegistry() });
  dns.setNames(${JSON.stringify(entries)});
  const addresses = ${JSON.stringify(dns.endpointSlices.map((slice) => slice.endpoints[0]!.addresses[0]))};
  await dns.start(addresses.map((address) => ({ address, port: 53 })));
  console.log("answers");`;
const server = await startProcess(
  network.fabric.enter[0]!,
  [...network.fabric.enter.slice(1), process.execPath, "--input-type=module", "-e", program],
  { cwd: import.meta.dirname },
);
after(() => server[Symbol.asyncDispose]());
await server.waitForOutput(/^answers$/m);

const folder = temporaryFolder("tulle-cluster-dns-");

/** What the C library finds in a pod of a namespace: its addresses, without their kinds of sockets. */
async function lookUp(name: string, options: { readonly namespace?: string; readonly server?: string } = {}) {
  const { namespace = "shop", server: at = "10.96.0.10" } = options;
  const file = path.join(folder, "resolv.conf");
  writeFileSync(file, podResolverFile({ namespace, servers: [at] }));
  const script = `mount --bind '${file}' /etc/resolv.conf && exec getent ahosts "$0"`;
  const { stdout } = await network.pods.caller.run("unshare", "-m", "sh", "-ec", script, name);
  const found = stdout.split("\n").flatMap((line) => (line.includes("STREAM") ? [line.split(" ")[0]!] : []));
  return [...new Set(found)].sort();
}

const own = (pods: readonly PodName[]): readonly string[] =>
  pods.flatMap((pod) => [podAddress[pod][4], podAddress[pod][6]]).sort();

const rows = [
  { name: "catalog", expected: ["10.96.0.77", "fd96::77"] },
  { name: "catalog", options: { server: "fd96::a" }, expected: ["10.96.0.77", "fd96::77"] },
  { name: "catalog.shop", options: { namespace: "default" }, expected: ["10.96.0.77", "fd96::77"] },
  { name: "catalog.shop.svc", options: { namespace: "default" }, expected: ["10.96.0.77", "fd96::77"] },
  { name: "catalog.shop.svc.cluster.local.", expected: ["10.96.0.77", "fd96::77"] },
  { name: "peers", expected: own(["two", "three"]) },
  { name: "10-244-2-13.peers", expected: [podAddress.three[4]] },
  { name: "kube-dns.kube-system", expected: ["10.96.0.10", "fd96::a"] },
  { name: "nobody.shop.svc.cluster.local.", expected: [] },
  // Without a search path it is a name of the world.
  { name: "catalog.shop.", expected: ["198.51.100.1"] },
  { name: "www.example.com", expected: ["198.51.100.1"] },
] as const;

for (const { name, expected, ...rest } of rows) {
  const options = "options" in rest ? rest.options : {};
  test(`${name} ${Object.values(options).join(" ")}`, async () => {
    assert.deepEqual(await lookUp(name, options), expected);
    assert.deepEqual(failures, []);
  });
}

test("a short name of another namespace is none", async () => {
  // The machine's server knows each name of the world, and "catalog" is one.
  assert.deepEqual(await lookUp("catalog", { namespace: "default" }), ["198.51.100.1"]);
});

test("the machine's servers are asked in the network that is theirs", async (t) => {
  using theirs = await NetworkNamespace.create();
  const machineServer = await datagramSocket(theirs, "127.0.0.1", 53);
  t.after(() => machineServer.close());
  machineServer.on("message", (message, { port, address }) =>
    machineServer.send(addressAnswer(message, "192.0.2.53"), port, address),
  );
  const streams = createServer((socket) => {
    const messages = new LengthPrefixed();
    socket.on("data", (chunk: Buffer) => {
      for (const each of messages.take(chunk)) socket.write(withLength(addressAnswer(each, "192.0.2.54")));
    });
  });
  theirs.within(() => streams.listen(53));
  t.after(() => streams.close());
  await using clusterDns = new ClusterDns({
    forwarding: () => ({ servers: [{ address: "127.0.0.1", port: 53 }], timeoutMs: 30_000, attempts: 1 }),
    openSocket: (kind) => theirs.within(() => openSocket(kind))!,
    metrics: new MetricRegistry(),
  });
  const [at] = await clusterDns.start([{ address: "127.0.0.1", port: 0 }]);
  const question = query("www.example.com");
  assert.equal(codeOf(await exchange(t, at!, question)), "SERVFAIL", "before it has names");
  clusterDns.setNames([]);
  assert.deepEqual(addressesIn(await exchange(t, at!, question)), ["192.0.2.53"]);
  const client = connect(at!.port, at!.address).on("error", () => undefined);
  t.after(() => client.destroy());
  client.write(withLength(question));
  const [answer] = (await once(client, "data")) as [Buffer];
  assert.deepEqual(addressesIn(answer.subarray(2)), ["192.0.2.54"]);
});

function addressesIn(answer: Buffer): readonly unknown[] {
  return (packet.decode(answer).answers ?? []).map((record) => ("data" in record ? record.data : undefined));
}

function codeOf(answer: Buffer): string | undefined {
  const { rcode } = packet.decode(answer) as { readonly rcode?: string };
  return rcode;
}
