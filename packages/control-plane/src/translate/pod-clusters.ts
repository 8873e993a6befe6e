// Beside the cluster of a Service that has no address of its own: where a client has chosen one of its pods by itself.
// Hosts of such clusters have no metadata that would say what they take, so that there are two, and the listener of a
// pod's address names the right one (Istio: one, which takes all pods for those of the mesh).
import { Cluster_DiscoveryType, Cluster_LbPolicy, type Cluster } from "@tulle/xds/envoy/config/cluster/v3/cluster_pb";
import { podClusterName, podTakes } from "../names/resource-names.ts";
import { isDialledByPod } from "../scope/captured-pods.ts";
import type { OutboundCluster } from "./outbound-clusters.ts";
import { translateConnectionCluster } from "./translate-clusters.ts";
import { type ClusterContext, mutualTlsMatch } from "./upstream-tls.ts";

export function translatePodClusters(
  outbound: readonly OutboundCluster[],
  context: ClusterContext,
): readonly Cluster[] {
  return outbound
    .filter(({ service, port }) => isDialledByPod(service, port))
    .flatMap((each) => podTakes.map((takes) => translatePodCluster(each, takes, context)));
}

function translatePodCluster(
  outbound: OutboundCluster,
  takes: (typeof podTakes)[number],
  context: ClusterContext,
): Cluster {
  const cluster = translateConnectionCluster(outbound, context);
  cluster.name = podClusterName(cluster.name, takes);
  cluster.clusterDiscoveryType = { case: "type", value: Cluster_DiscoveryType.ORIGINAL_DST };
  delete cluster.edsClusterConfig;
  cluster.lbPolicy = Cluster_LbPolicy.CLUSTER_PROVIDED;
  // Empty where a DestinationRule says how all of its pods are spoken to.
  const mutualTls = cluster.transportSocketMatches.find(({ name }) => name === mutualTlsMatch);
  if (mutualTls?.transportSocket !== undefined && takes === "mutual TLS")
    cluster.transportSocket = mutualTls.transportSocket;
  cluster.transportSocketMatches = [];
  return cluster;
}
