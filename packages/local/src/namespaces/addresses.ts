// The addresses of namespaces mode. They are the same in every instance: nobody outside of it sees them.

/** Both families of one place. */
export interface AddressPair {
  readonly ipv4: string;
  readonly ipv6: string;
}

export interface NodeAddresses {
  readonly name: string;
  /** Its own, where the supervisor and the other nodes reach it. */
  readonly address: AddressPair;
  /** Of its bridge, by which its pods leave. */
  readonly gateway: AddressPair;
  readonly podRange: AddressPair;
  /** The pod's of a number from `firstPod` to `lastPod`. */
  readonly pod: (number: number) => AddressPair;
}

/** Lengths of the prefixes, of a node's range of pods and of the range of nodes. */
export const prefixBits = { ipv4: 24, ipv6: 64 } as const;
export const firstPod = 2;
export const lastPod = 254;

/** Where the control plane is. */
export const supervisorAddress: AddressPair = { ipv4: "172.31.255.1", ipv6: "fd00:172:31:255::1" };
/** Kubernetes' customary ones; the first is that of Services that ask for none. */
export const serviceRanges: AddressPair = { ipv4: "10.96.0.0/16", ipv6: "fd00:10:96::/112" };
export const clusterDns = "10.96.0.10";

export const nodes: readonly NodeAddresses[] = [1, 2].map((number) => ({
  name: `node-${number}`,
  address: { ipv4: `172.31.255.1${number}`, ipv6: `fd00:172:31:255::1${number}` },
  gateway: podAddress(number, 1),
  podRange: { ipv4: `10.244.${number}.0/24`, ipv6: `fd00:10:244:${number}::/64` },
  pod: (pod: number) => podAddress(number, pod),
}));

/** All that the mesh itself has. */
export const insideRanges = {
  ipv4: ["172.31.255.0/24", ...nodes.map(({ podRange }) => podRange.ipv4), serviceRanges.ipv4],
  ipv6: ["fd00:172:31:255::/64", ...nodes.map(({ podRange }) => podRange.ipv6), serviceRanges.ipv6],
} as const;

function podAddress(node: number, pod: number): AddressPair {
  return { ipv4: `10.244.${node}.${pod}`, ipv6: `fd00:10:244:${node}::${pod.toString(16)}` };
}
