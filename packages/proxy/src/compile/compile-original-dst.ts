// The hosts of a cluster of type ORIGINAL_DST (config.cluster.v3.Cluster.OriginalDstLbConfig).
import {
  type Cluster as ClusterMessage,
  Cluster_LbPolicy as LbPolicy,
} from "@tulle/xds/envoy/config/cluster/v3/cluster_pb";
import { OriginalDstHosts } from "../cluster/original-dst-hosts.ts";
import { makeOriginalDstStats } from "../cluster/original-dst-stats.ts";
import type { ClusterSettings } from "../cluster/runtime-cluster.ts";
import type { CompileScope } from "../fields/compile-scope.ts";
import { durationMs } from "../fields/duration.ts";
import type { Place, Problems } from "../fields/problems.ts";

const defaultCleanupIntervalMs = 5000;
const defaultHeaderName = "x-envoy-original-dst-host";

export function compileOriginalDst(
  message: ClusterMessage,
  settings: ClusterSettings,
  scope: CompileScope,
  place: Place,
  problems: Problems,
): OriginalDstHosts {
  if (message.loadAssignment !== undefined)
    problems.error(place.field("load_assignment"), "ORIGINAL_DST clusters must have no load assignment configured");
  if (message.loadBalancingPolicy === undefined && message.lbPolicy !== LbPolicy.CLUSTER_PROVIDED) {
    const words = "only 'CLUSTER_PROVIDED' is allowed with cluster type 'ORIGINAL_DST'";
    problems.error(place.field("lb_policy"), words);
  }
  const { name: clusterName, observabilityName, stats } = settings;
  const config = message.lbConfig.case === "originalDstLbConfig" ? message.lbConfig.value : undefined;
  const portOverride = config?.upstreamPortOverride;
  if (portOverride !== undefined && portOverride > 65_535) {
    const at = place.field("original_dst_lb_config").field("upstream_port_override");
    problems.error(at, "a port from 0 to 65535 is required");
  }
  const headerName = config?.httpHeaderName || defaultHeaderName;
  return new OriginalDstHosts({
    clusterName,
    headerName: config?.useHttpHeader === true ? headerName.toLowerCase() : undefined,
    portOverride,
    cleanupIntervalMs: Math.max(1, durationMs(message.cleanupInterval, defaultCleanupIntervalMs)),
    isOwnListener: scope.isOwnListener ?? (() => false),
    stats,
    ownStats: makeOriginalDstStats(scope.metrics, observabilityName),
    clock: scope.clock,
    log: scope.logging.logger("upstream"),
  });
}
