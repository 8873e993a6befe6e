// Services on the wire, over two nodes of this test's own, by IPv4 and IPv6, TCP and UDP.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { waitFor } from "../../../../tests/tools/processes.ts";
import {
  Connection,
  Flow,
  gateway,
  machine,
  NodeNetwork,
  podAddress,
  podPort,
  type NodeName,
  type PodName,
} from "../testing/node-network.ts";
import { clusterRanges, service, serviceNodes, slices, type PodConditions } from "../testing/services.ts";
import { clusterAddresses, type ClusterService } from "./cluster-objects.ts";
import { ServiceAllocator } from "./service-allocator.ts";
import { ServiceNetwork } from "./service-network.ts";
import { maxClients } from "./service-rules.ts";

const network = await NodeNetwork.open();
const failures: string[] = [];
const services = new ServiceNetwork({
  nodes: serviceNodes.map((node) => ({ ...node, prefix: network.nodes[node.name].enter })),
  clusterRanges,
  externalRanges: ["203.0.113.0/24"],
  onFailure: (node, message) => failures.push(`${node}: ${message}`),
});
after(() => services.close());

const allocator = new ServiceAllocator({ clusterRanges });
const { client, pods, nodes } = network;
const ready: PodConditions = { ready: true, serving: true, terminating: false };
const ending: PodConditions = { ready: false, serving: true, terminating: true };
const notReady: PodConditions = { ready: false, serving: false, terminating: false };

interface Reached {
  readonly address: { readonly 4: string; readonly 6: string };
  readonly nodePorts: { readonly tcp: number; readonly udp: number };
}

/** One Service with these pods, in the place of the one before; where it is reached. */
async function have(
  spec: Partial<ClusterService["spec"]>,
  behind: Partial<Record<PodName, PodConditions>>,
): Promise<Reached> {
  const allocation = allocator.allocate([service("catalog", spec)]);
  const [allocated] = allocation.services;
  services.update({ services: allocation.services, endpointSlices: slices("catalog", behind) });
  await services.settled();
  assert.deepEqual(failures, []);
  const [ipv4 = "", ipv6 = ""] = clusterAddresses(allocated!);
  const [tcp, udp] = allocated!.spec.ports.map(({ nodePort = 0 }) => nodePort);
  return { address: { 4: ipv4, 6: ipv6 }, nodePorts: { tcp: tcp!, udp: udp! } };
}

const families = [4, 6] as const;
const ways = families.flatMap((family) => (["tcp", "udp"] as const).map((protocol) => ({ family, protocol })));

/** Who answers, of many calls, each with a connection of its own. */
async function answers(call: () => Promise<string>, count = 24): Promise<readonly string[]> {
  const all = new Set<string>();
  for (let number = 0; number < count; number += 1) all.add(await call());
  return [...all].sort();
}

const aDroppedPacket = { what: "a packet that is dropped" };

async function dropped(node: NodeName): Promise<number> {
  const text = await nodes[node].mustRun("nft", "list", "chain", "inet", "tulle_services", "no_pod_on_node");
  return Number(/packets (\d+)/.exec(text)?.[1]);
}

/** The first packet of a connection that is not answered reaches the node, and that is all. */
async function isDropped(node: NodeName, connect: () => Connection): Promise<void> {
  const before = await dropped(node);
  await using connection = connect();
  await waitFor(async () => (await dropped(node)) > before, aDroppedPacket);
  assert.equal(connection.isDone, false);
}

test("a pod reaches all pods of a Service by its address, and they see the pod", async () => {
  const { address } = await have({}, { one: ready, two: ready, three: ready, caller: notReady });
  for (const { family, protocol } of ways) {
    const me = podAddress.caller[family];
    assert.deepEqual(
      await answers(() => network.call(pods.caller, address[family], 80, protocol), 60),
      ["one", "three", "two"].map((pod) => `${pod} sees ${me}`),
    );
  }
});

test("a node's own programs reach a Service, on both nodes", async () => {
  const { address } = await have({}, { two: ready });
  for (const family of families) {
    assert.equal(await network.call(nodes.node1, address[family], 80), `two sees ${machine.node1[family]}`);
    assert.equal(await network.call(nodes.node2, address[family], 80), `two sees ${gateway.node2[family]}`);
  }
});

test("whoever comes from outside by a route to Services' addresses takes the node's address", async () => {
  const { address } = await have({}, { two: ready });
  for (const family of families) {
    assert.equal(await network.call(client, address[family], 80), `two sees ${machine.node1[family]}`);
  }
});

test("a pod that its own call comes back to sees its node", async () => {
  const { address } = await have({}, { one: ready });
  for (const { family, protocol } of ways) {
    const answer = await network.call(pods.one, address[family], 80, protocol);
    assert.equal(answer, `one sees ${gateway.node1[family]}`);
  }
});

test("a Service without pods refuses at once, by its address and by its node ports", async () => {
  for (const behind of [{}, { one: notReady }] as const) {
    const { address, nodePorts } = await have({ type: "NodePort" }, behind);
    for (const { family, protocol } of ways) {
      assert.equal(await network.call(pods.caller, address[family], 80, protocol), "ECONNREFUSED");
      assert.equal(await network.call(nodes.node1, address[family], 80, protocol), "ECONNREFUSED");
      for (const node of ["node1", "node2"] as const) {
        const answer = await network.call(client, machine[node][family], nodePorts[protocol], protocol);
        assert.equal(answer, "ECONNREFUSED", `${node} ${family} ${protocol}`);
      }
    }
  }
});

test("a port that the Service does not have is refused, an address that no Service has is silent", async () => {
  const { address } = await have({}, { one: ready });
  for (const family of families) {
    assert.equal(await network.call(pods.caller, address[family], 81), "ECONNREFUSED");
    assert.equal(await network.call(nodes.node1, address[family], 81), "ECONNREFUSED");
  }
  await using connection = new Connection(pods.caller, "10.96.3.3", 80);
  await waitFor(async () => {
    const text = await nodes.node1.mustRun("nft", "list", "chain", "inet", "tulle_services", "refuse_others");
    return /@cluster_ranges4 counter packets [1-9]/.test(text);
  }, aDroppedPacket);
  assert.equal(connection.isDone, false);
});

// https://kubernetes.io/docs/concepts/services-networking/service-traffic-policy and
// https://kubernetes.io/docs/tutorials/services/source-ip: what is there of each policy, as rows.
const policies = [
  { policy: "Cluster", behind: { two: ready }, at: "node1", sees: "machine" },
  { policy: "Cluster", behind: { two: ready }, at: "node2", sees: "gateway" },
  { policy: "Local", behind: { two: ready }, at: "node2", sees: "client" },
  { policy: "Local", behind: { one: ready, two: ready }, at: "node2", sees: "client" },
  { policy: "Local", behind: { two: ready }, at: "node1", sees: "nobody" },
  // Its node has a pod that ends and still answers: it is better than none.
  { policy: "Local", behind: { one: ready, two: ending }, at: "node2", sees: "client" },
] as const;

for (const { policy, behind, at, sees } of policies) {
  const names = Object.keys(behind).join(" and ");
  test(`externalTrafficPolicy ${policy}, ${names}, by ${at}: ${sees}`, async () => {
    const { nodePorts } = await have({ type: "NodePort", externalTrafficPolicy: policy }, behind);
    for (const { family, protocol } of ways) {
      const [node, port] = [machine[at][family], nodePorts[protocol]];
      if (sees === "nobody") {
        if (protocol === "tcp") await isDropped(at, () => new Connection(client, node, port));
        continue;
      }
      const who = { machine: machine[at], gateway: gateway[at], client: machine.client }[sees];
      assert.deepEqual(await answers(() => network.call(client, node, port, protocol), 8), [`two sees ${who[family]}`]);
    }
  });
}

test("with Local a node's programs and its pods reach all pods by a node port all the same", async () => {
  const { nodePorts } = await have({ type: "NodePort", externalTrafficPolicy: "Local" }, { two: ready });
  for (const family of families) {
    const [me, port] = [machine.node1[family], nodePorts.tcp];
    assert.equal(await network.call(pods.caller, me, port), `two sees ${podAddress.caller[family]}`);
    assert.equal(await network.call(nodes.node1, me, port), `two sees ${me}`);
  }
});

test("a pod that takes an address of the world for its own gets no connection by a node port", async () => {
  const { nodePorts } = await have({ type: "NodePort", externalTrafficPolicy: "Local" }, { one: ready });
  await pods.caller.mustRun("ip", "address", "add", "192.0.2.77/32", "dev", "lo");
  // Some machines let nothing in that could not go back; it is not what this rests on.
  await nodes.node1.mustRun("sh", "-ec", "for file in /proc/sys/net/ipv4/conf/*/rp_filter; do echo 0 > $file; done");
  await using connection = new Connection(pods.caller, machine.node1[4], nodePorts.tcp, "192.0.2.77");
  // Its first packet is one from outside, and what the pod says to that goes outside.
  const flows = (): Promise<string> => nodes.node1.mustRun("conntrack", "-L", "-p", "tcp", "--orig-src", "192.0.2.77");
  await waitFor(async () => (await flows()).includes("SYN_RECV"), { what: "an answer to nobody" });
  assert.equal(connection.isDone, false);
});

test("internalTrafficPolicy Local stays on the node, and is silent where it has no pod", async () => {
  const spec = { internalTrafficPolicy: "Local" } as const;
  const both = await have(spec, { one: ready, two: ready });
  for (const { family, protocol } of ways) {
    const call = (): Promise<string> => network.call(pods.caller, both.address[family], 80, protocol);
    assert.deepEqual(await answers(call, 12), [`one sees ${podAddress.caller[family]}`]);
  }
  const far = await have({ ...spec, type: "NodePort" }, { two: ready });
  for (const family of families) {
    await isDropped("node1", () => new Connection(pods.caller, far.address[family], 80));
    // Node ports are none of its business.
    const answer = await network.call(client, machine.node1[family], far.nodePorts.tcp);
    assert.equal(answer, `two sees ${machine.node1[family]}`);
  }
});

test("a pod that ends and answers is called where no other one is ready", async () => {
  const alone = await have({}, { one: ending, two: notReady });
  assert.equal(await network.call(pods.caller, alone.address[4], 80), `one sees ${podAddress.caller[4]}`);
  const among = await have({}, { one: ending, two: ready });
  const seen = await answers(() => network.call(pods.caller, among.address[4], 80));
  assert.deepEqual(seen, [`two sees ${podAddress.caller[4]}`]);
});

test("sessionAffinity ClientIP: a client stays with its pod, also through changes, until that is gone", async () => {
  const spec = { sessionAffinity: "ClientIP" };
  const pod = (answer: string): PodName => answer.split(" ")[0] as PodName;
  for (const family of families) {
    const { address } = await have(spec, { one: ready, two: ready, three: ready });
    const call = (): Promise<string> => network.call(pods.caller, address[family], 80);
    const chosen = pod(await call());
    assert.equal((await answers(call)).length, 1);
    // Another pod goes: nothing changes for the client.
    const other = (["one", "two", "three"] as const).find((name) => name !== chosen)!;
    const rest = { one: ready, two: ready, three: ready, [other]: notReady };
    await have(spec, rest);
    assert.deepEqual((await answers(call)).map(pod), [chosen]);
    await have(spec, { ...rest, [chosen]: notReady });
    const next = await answers(call);
    assert.equal(next.length, 1);
    assert.notEqual(pod(next[0]!), chosen);
  }
});

test("where no more clients can be remembered, those that come are led to pods all the same", async () => {
  const { address } = await have({ sessionAffinity: "ClientIP" }, { one: ready });
  const clients = Array.from({ length: maxClients }, (_, index) => `10.9.${index >> 8}.${index & 255}`);
  const set = `inet tulle_services clients4/shop/catalog/tcp/80/${podAddress.one[4]}/${podPort}/10800`;
  await nodes.node1.mustRun("nft", `add element ${set} { ${clients.join(", ")} }`);
  assert.equal(await network.call(pods.caller, address[4], 80), `one sees ${podAddress.caller[4]}`);
});

test("the time of sessionAffinity is the Service's", async () => {
  const config = { clientIP: { timeoutSeconds: 77 } };
  await have({ sessionAffinity: "ClientIP", sessionAffinityConfig: config }, { one: ready });
  assert.match(await nodes.node1.mustRun("nft", "list", "sets", "inet"), /timeout 1m17s/);
});

test("connections and flows that are there go on through changes of the rules", async () => {
  const { address } = await have({}, { one: ready, two: ready });
  for (const family of families) {
    using flow = await Flow.open(pods.caller, address[family], 80);
    const first = await flow.ask();
    const other = first.startsWith("one") ? "two" : "one";
    await have({}, { one: ready, two: ready, three: ready });
    await have({}, { one: ready, two: ready, [other]: notReady });
    assert.equal(await flow.ask(), first);
    await have({}, { one: ready, two: ready });
  }
});

test("a flow of UDP to a pod that is gone goes to another one; to one that ends and answers it goes on", async () => {
  for (const family of families) {
    const { address } = await have({}, { one: ready, two: ready });
    using flow = await Flow.open(pods.caller, address[family], 80);
    const first = await flow.ask();
    const [chosen, other] = first.startsWith("one") ? (["one", "two"] as const) : (["two", "one"] as const);
    await have({}, { [chosen]: ending, [other]: ready });
    assert.equal(await flow.ask(), first);
    await have({}, { [other]: ready });
    assert.equal(await flow.ask(), `${other} sees ${podAddress.caller[family]}`);
  }
});

test("an address of externalIPs is led to pods as node ports are", async () => {
  const spec = { externalIPs: ["203.0.113.7"] };
  await have(spec, { two: ready });
  assert.equal(await network.call(client, "203.0.113.7", 80), `two sees ${machine.node1[4]}`);
  await have({ ...spec, externalTrafficPolicy: "Local" }, { one: ready, two: ready });
  assert.equal(await network.call(client, "203.0.113.7", 80), `one sees ${machine.client[4]}`);
});

test("a Service that is gone leaves nothing, and its node port is the node's again", async () => {
  const { address, nodePorts } = await have({ type: "NodePort" }, { one: ready });
  services.update({ services: [], endpointSlices: [] });
  await services.settled();
  for (const node of Object.values(nodes)) {
    const text = await node.mustRun("nft", "list", "table", "inet", "tulle_services");
    assert.equal(text.includes("catalog"), false, text);
    assert.equal(text.includes(`${nodePorts.tcp}`), false, text);
  }
  await using connection = new Connection(pods.caller, address[4], 80);
  assert.equal(await network.call(client, machine.node1[4], nodePorts.tcp), "ECONNREFUSED");
  assert.equal(connection.isDone, false);
});

test("rules that somebody has taken out come again with the next change", async () => {
  const { address } = await have({}, { one: ready });
  await nodes.node1.mustRun("nft", "flush", "ruleset");
  await have({}, { one: ready, two: ready });
  assert.match(await network.call(pods.caller, address[4], 80), /^(?:one|two) sees /);
  assert.equal(await network.call(pods.caller, podAddress.two[4], podPort), `two sees ${podAddress.caller[4]}`);
});
