// Clusters of an AUTO_PASSTHROUGH server: one for each port and subset of its Services, under the server name that asks
// for it. What they carry is TLS already, between a proxy of another mesh and the workload (Istio:
// buildOutboundSniDnatClusters).
import type { Cluster } from "@tulle/xds/envoy/config/cluster/v3/cluster_pb";
import { sniName } from "../names/resource-names.ts";
import type { OutboundCluster } from "./outbound-clusters.ts";
import { translateOutboundCluster } from "./translate-clusters.ts";

/** Shares the endpoints of the cluster that requests are routed to. */
export function translateSniCluster(outbound: OutboundCluster): Cluster {
  const cluster = translateOutboundCluster(outbound, { type: "router", trustDomain: undefined });
  cluster.name = sniName(outbound.service.hostname, outbound.port.number, outbound.subset?.name);
  delete cluster.transportSocket;
  cluster.transportSocketMatches = [];
  cluster.typedExtensionProtocolOptions = {};
  return cluster;
}
