// The network of an instance in namespaces mode: a bridge between the supervisor and two simulated nodes, and on each
// node a bridge for its pods. All of it is held by descriptors of this process.
import { NetworkNamespace } from "@tulle/capture";
import { type NodeAddresses, nodes, prefixBits, supervisorAddress } from "./addresses.ts";
import { ipBatch, setSysctls } from "./ip-batch.ts";

export interface Node {
  readonly addresses: NodeAddresses;
  readonly network: NetworkNamespace;
}

/** Of the supervisor's network, where the nodes are connected; of a node's, where its pods are. */
export const machinesBridge = "machines";
export const podsBridge = "pods";

const forwarding = {
  "net.ipv4.ip_forward": "1",
  "net.ipv6.conf.all.forwarding": "1",
  // Pods of a node reach each other by it alone.
  "net.ipv4.conf.all.send_redirects": "0",
  "net.ipv4.conf.default.send_redirects": "0",
};

/** This process has to be in a network with nothing in it. */
export async function makeFabric(): Promise<readonly Node[]> {
  using fabric = NetworkNamespace.current();
  const made = nodes.map((addresses): Node => ({ addresses, network: NetworkNamespace.create() }));
  await ipBatch(fabric, [
    "link set lo up",
    `link add ${machinesBridge} type bridge`,
    `link set ${machinesBridge} up`,
    `address add ${supervisorAddress.ipv4}/${prefixBits.ipv4} dev ${machinesBridge}`,
    `address add ${supervisorAddress.ipv6}/${prefixBits.ipv6} dev ${machinesBridge} nodad`,
    ...made.flatMap(({ addresses: { name }, network }) => [
      `link add ${name} type veth peer name eth0 netns ${network.path}`,
      `link set ${name} master ${machinesBridge} up`,
    ]),
    ...nodes.flatMap((node) => routesTo(node)),
  ]);
  await Promise.all(made.map((node) => setUpNode(node)));
  return made;
}

async function setUpNode({ addresses: node, network }: Node): Promise<void> {
  setSysctls(network, forwarding);
  await ipBatch(network, [
    "link set lo up",
    "link set eth0 up",
    `address add ${node.address.ipv4}/${prefixBits.ipv4} dev eth0`,
    `address add ${node.address.ipv6}/${prefixBits.ipv6} dev eth0 nodad`,
    `link add ${podsBridge} type bridge`,
    `link set ${podsBridge} up`,
    `address add ${node.gateway.ipv4}/${prefixBits.ipv4} dev ${podsBridge}`,
    `address add ${node.gateway.ipv6}/${prefixBits.ipv6} dev ${podsBridge} nodad`,
    ...nodes.filter((other) => other !== node).flatMap((other) => routesTo(other)),
    `route add default via ${supervisorAddress.ipv4}`,
    `route add ::/0 via ${supervisorAddress.ipv6}`,
  ]);
}

function routesTo({ address, podRange }: NodeAddresses): readonly string[] {
  return [`route add ${podRange.ipv4} via ${address.ipv4}`, `route add ${podRange.ipv6} via ${address.ipv6}`];
}
