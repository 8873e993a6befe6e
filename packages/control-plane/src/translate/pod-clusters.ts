// Beside the cluster of a Service that has no address of its own: where a client has chosen one of its pods by itself.
// Hosts of such clusters have no metadata that would say what they take, so that there are two, and the listener of a
// pod's address names the right one (Istio: one, which takes all pods for those of the mesh).
import { Cluster_DiscoveryType, Cluster_LbPolicy, type Cluster } from "@tulle/xds/envoy/config/cluster/v3/cluster_pb";
import { podClusterName, podRequestsClusterName, podTakes } from "../names/resource-names.ts";
import { isDialledByPod, requestPortsOfPods } from "../scope/captured-pods.ts";
import type { OutboundCluster } from "./outbound-clusters.ts";
import { translateConnectionCluster, translateOutboundCluster } from "./translate-clusters.ts";
import { type ClusterContext, mutualTlsMatch } from "./upstream-tls.ts";

export function translatePodClusters(
  outbound: readonly OutboundCluster[],
  context: ClusterContext,
): readonly Cluster[] {
  const connections = outbound
    .filter(({ service, port }) => isDialledByPod(service, port))
    .flatMap((each) => podTakes.map((takes) => translatePodCluster(each, takes, context)));
  const requests = outbound
    .filter(({ service, port, subset }) => subset === undefined && requestPortsOfPods(service, port).length > 0)
    .map((each) => podRequestsCluster(each, context));
  return [...connections, ...requests];
}

/** By the pod's own name: all of the Service's pods take mutual TLS. */
function podRequestsCluster(outbound: OutboundCluster, context: ClusterContext): Cluster {
  const cluster = translateOutboundCluster(outbound, context);
  cluster.name = podRequestsClusterName(cluster.name);
  return atPod(cluster, "mutual TLS");
}

function translatePodCluster(
  outbound: OutboundCluster,
  takes: (typeof podTakes)[number],
  context: ClusterContext,
): Cluster {
  const cluster = translateConnectionCluster(outbound, context);
  cluster.name = podClusterName(cluster.name, takes);
  return atPod(cluster, takes);
}

/** The one that the client has dialled. */
function atPod(cluster: Cluster, takes: (typeof podTakes)[number]): Cluster {
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
