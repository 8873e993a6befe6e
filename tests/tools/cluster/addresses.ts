// Who has which address in the cluster's own networks. Both families everywhere; the numbers are of the ranges that
// documents of Kubernetes use.

export interface NodePlace {
  readonly name: string;
  readonly zone: string;
  readonly addresses: readonly [ipv4: string, ipv6: string];
  /** Of its pods. */
  readonly podRanges: readonly [ipv4: string, ipv6: string];
}

const node = (index: number): NodePlace => ({
  name: `node${index}`,
  zone: `zone-${index}`,
  addresses: [`10.10.0.${index}`, `fd00:10::${index}`],
  podRanges: [`10.244.${index}.0/24`, `fd00:244:${index}::/64`],
});

export const nodes: readonly [NodePlace, NodePlace] = [node(1), node(2)];

/** Beside the nodes: where tests run, and any client that is no pod. */
export const outside: readonly [ipv4: string, ipv6: string] = ["10.10.0.254", "fd00:10::fe"];

export const podRanges = ["10.244.0.0/16", "fd00:244::/48"] as const;
export const serviceRanges = ["10.96.0.0/16", "fd00:96::/112"] as const;
export const dnsServiceAddress = "10.96.0.10";
/** The first of the services' range is the API server's own. */
export const apiServiceAddress = "10.96.0.1";
export const apiPort = 6443;
export const apiUrl = `https://${nodes[0].addresses[0]}:${apiPort}`;
