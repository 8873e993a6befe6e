// Clusters of an AUTO_PASSTHROUGH server: one for each port and subset of its Services, under the server name that asks
// for it. What they carry is TLS already, between a proxy of another mesh and the workload (Istio:
// buildOutboundSniDnatClusters).
import type { Cluster } from "@tulle/xds/envoy/config/cluster/v3/cluster_pb";
import type { OutboundCluster } from "./outbound-clusters.ts";
import { translateOutboundCluster } from "./translate-clusters.ts";

/** One of `passedClusters`. */
export function translateSniCluster(passed: OutboundCluster): Cluster {
  const cluster = translateOutboundCluster(passed, { type: "router", trustDomain: undefined });
  delete cluster.transportSocket;
  cluster.transportSocketMatches = [];
  cluster.typedExtensionProtocolOptions = {};
  return cluster;
}
