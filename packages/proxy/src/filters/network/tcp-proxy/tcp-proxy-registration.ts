// The TCP proxy's row in the table of network filters.
import {
  type TcpProxy as TcpProxyMessage,
  TcpProxySchema,
  type TcpProxy_WeightedCluster,
} from "@tulle/xds/envoy/extensions/filters/network/tcp_proxy/v3/tcp_proxy_pb";
import type { Cluster } from "../../../cluster/cluster.ts";
import { compileAccessLog } from "../../../fields/compile-access-log.ts";
import { durationMs } from "../../../fields/duration.ts";
import { compileFlushInterval } from "../../../fields/compile-flush-interval.ts";
import type { Place, Problems } from "../../../fields/problems.ts";
import { decodeTypedConfig } from "../../../fields/typed-config.ts";
import type { ConnectionInfo } from "../../../listener/connection-info.ts";
import type { Slot } from "../../../runtime/slot.ts";
import type { NetworkFilterBuild, NetworkFilterRegistration } from "../network-filter-registration.ts";
import { perConnectionClusterKey } from "../per-connection-cluster.ts";
import { TcpProxy } from "./tcp-proxy.ts";
import type { TcpLogFlush, TcpProxySettings } from "./tcp-proxy-settings.ts";
import { makeTcpProxyStats } from "./tcp-proxy-stats.ts";
import { tcpProxyMessage } from "./tcp-proxy-fields.ts";

const defaultIdleTimeoutMs = 3_600_000;

export const tcpProxyRegistration: NetworkFilterRegistration = {
  types: [TcpProxySchema.typeName],
  isTerminal: true,
  compile(config, build) {
    const message = decodeTypedConfig(tcpProxyMessage, config, build.place, build.listener.problems);
    return message && compileTcpProxy(message, build);
  },
};

function compileTcpProxy(message: TcpProxyMessage, build: NetworkFilterBuild): TcpProxy | undefined {
  const { listener, place } = build;
  const { scope, problems } = listener;
  const { statPrefix, maxConnectAttempts = 1, maxDownstreamConnectionDurationJitterPercentage: jitter } = message;
  if (statPrefix === "") problems.error(place.field("stat_prefix"), "value length must be at least 1 characters");
  if (maxConnectAttempts < 1) {
    problems.error(place.field("max_connect_attempts"), "value must be greater than or equal to 1");
  }
  const chooseCluster = compileClusterChoice(message, build);
  const accessLogs = message.accessLog.map((log, index) =>
    compileAccessLog(log, scope, place.field("access_log", index), problems),
  );
  const logFlush = compileLogFlush(message, place, problems);
  if (problems.hasErrors) return undefined;
  const settings: TcpProxySettings = {
    statPrefix,
    chooseCluster,
    idleTimeoutMs: durationMs(message.idleTimeout, defaultIdleTimeoutMs),
    maxDurationMs: durationMs(message.maxDownstreamConnectionDuration, 0),
    maxDurationJitterPercent: jitter?.value ?? 0,
    maxConnectAttempts,
    accessLogs: accessLogs.filter((log) => log !== undefined),
    logFlush,
    stats: makeTcpProxyStats(scope.metrics, statPrefix),
  };
  return new TcpProxy(settings);
}

function compileLogFlush(message: TcpProxyMessage, place: Place, problems: Problems): TcpLogFlush {
  const { accessLogOptions: options } = message;
  const intervalMs = compileFlushInterval(message, place, problems);
  if (options !== undefined && message.flushAccessLogOnConnected) {
    problems.error(place, "Only one of flush_access_log_on_connected or access_log_options can be specified.");
  }
  return {
    intervalMs,
    onStart: options?.flushAccessLogOnStart ?? false,
    onConnected: options?.flushAccessLogOnConnected ?? message.flushAccessLogOnConnected,
  };
}

type ChooseCluster = TcpProxySettings["chooseCluster"];

/** A cluster that a filter before has named comes first, as in Envoy. */
function compileClusterChoice(message: TcpProxyMessage, build: NetworkFilterBuild): ChooseCluster {
  const { scope } = build.listener;
  const configured = compileConfiguredChoice(message, build);
  return (connection: ConnectionInfo) => {
    const named = connection.filterState.get(perConnectionClusterKey);
    return typeof named === "string" ? scope.knownClusterSlot(named) : configured();
  };
}

function compileConfiguredChoice(message: TcpProxyMessage, build: NetworkFilterBuild): () => Slot<Cluster> | undefined {
  const { listener, place } = build;
  const specifier = message.clusterSpecifier;
  switch (specifier.case) {
    case "cluster": {
      const slot = clusterSlot(specifier.value, build, place.field("cluster"));
      return () => slot;
    }
    case "weightedClusters":
      return compileWeights(specifier.value, build, place.field("weighted_clusters"));
    case undefined:
      listener.problems.error(place.field("cluster_specifier"), "is required");
      return () => undefined;
  }
}

function clusterSlot(name: string, { listener }: NetworkFilterBuild, place: Place): Slot<Cluster> {
  if (name === "") listener.problems.error(place, "value length must be at least 1 characters");
  listener.clusterNames.add(name);
  return listener.scope.clusterSlot(name);
}

function compileWeights(
  { clusters }: TcpProxy_WeightedCluster,
  build: NetworkFilterBuild,
  place: Place,
): () => Slot<Cluster> | undefined {
  const { problems, scope } = build.listener;
  const slots: Slot<Cluster>[] = [];
  const upTo: number[] = [];
  let total = 0;
  for (const [index, { name, weight }] of clusters.entries()) {
    const at = place.field("clusters", index);
    if (weight < 1) problems.error(at.field("weight"), "value must be greater than or equal to 1");
    total += weight;
    upTo.push(total);
    slots.push(clusterSlot(name, build, at.field("name")));
  }
  if (clusters.length === 0) problems.error(place.field("clusters"), "value must contain at least 1 item(s)");
  return () => {
    const chosen = scope.random() * total;
    return slots[upTo.findIndex((bound) => chosen < bound)];
  };
}
