// The Service and the endpoints of the cluster's name server, under the names that Kubernetes' installers give them.
import { isIPv6 } from "node:net";
import { serviceNameLabel, type ClusterEndpointSlice, type ClusterService } from "./cluster-objects.ts";

export interface ClusterDnsPlaces {
  /** The Service's, in the ranges of Services (`10.96.0.10`). */
  readonly addresses: readonly string[];
  /** Where the server listens, one of each family. */
  readonly servers: readonly { readonly address: string; readonly port: number }[];
}

export interface ClusterDnsObjects {
  readonly service: ClusterService;
  readonly endpointSlices: readonly ClusterEndpointSlice[];
}

const identity = { name: "kube-dns", namespace: "kube-system" };
const transports = [
  { name: "dns", protocol: "UDP" },
  { name: "dns-tcp", protocol: "TCP" },
] as const;

/** It belongs to no node: all of them ask the one server. */
export function clusterDnsObjects({ addresses, servers }: ClusterDnsPlaces): ClusterDnsObjects {
  return {
    service: {
      metadata: identity,
      isOfCluster: true,
      spec: {
        clusterIPs: addresses,
        ipFamilies: addresses.map((address) => (isIPv6(address) ? "IPv6" : "IPv4")),
        ports: transports.map((transport) => ({ ...transport, port: 53 })),
      },
    },
    endpointSlices: servers.map(({ address, port }) => ({
      metadata: { namespace: identity.namespace, labels: { [serviceNameLabel]: identity.name } },
      addressType: isIPv6(address) ? "IPv6" : "IPv4",
      ports: transports.map((transport) => ({ ...transport, port })),
      endpoints: [{ addresses: [address] }],
    })),
  };
}
