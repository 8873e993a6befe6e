// `/clusters`: hosts, their counters and the limits of every cluster, as text or JSON (admin.v3.Clusters).
import type { Host } from "../cluster/cluster.ts";
import { healthFlags } from "../cluster/host-health.ts";
import type { RuntimeCluster } from "../cluster/runtime-cluster.ts";
import { type AdminPage, type AdminTargets, json, parameter, text } from "./admin-page.ts";
import { addressJson } from "./listeners-page.ts";
import { compileRe2 } from "../cel/re2.ts";

const highPriorityDefaults = [1024, 1024, 1024, 3] as const;
const limitNames = ["max_connections", "max_pending_requests", "max_requests", "max_retries"] as const;

function limits(cluster: RuntimeCluster): readonly number[] {
  const { maxConnections, maxPendingRequests, maxRequests, maxRetries } = cluster.circuitBreakers;
  return [maxConnections, maxPendingRequests, maxRequests, maxRetries];
}

interface HostCounter {
  readonly name: string;
  readonly value: number;
  readonly isGauge: boolean;
}

/** In the order of Envoy's JSON: counters, then gauges. */
function hostCounters(host: Host): readonly HostCounter[] {
  const counter = (name: string, value: number): HostCounter => ({ name, value, isGauge: false });
  const gauge = (name: string, value: number): HostCounter => ({ name, value, isGauge: true });
  const { stats } = host;
  return [
    counter("cx_connect_fail", stats.connectFailures),
    counter("cx_total", stats.connectionsTotal),
    counter("rq_error", stats.requestsError),
    counter("rq_success", stats.requestsSuccess),
    counter("rq_timeout", stats.requestTimeouts),
    counter("rq_total", stats.requestsTotal),
    gauge("cx_active", stats.connectionsActive),
    gauge("rq_active", host.activeRequests),
    gauge("rq_pending_active", 0),
  ];
}

function flagsText(host: Host): string {
  const flags = healthFlags(host);
  return flags.length === 0 ? "healthy" : flags.map((flag) => `/${flag}`).join("");
}

/** By our flags; what the endpoint says of itself stands apart (admin.v3.HostHealthStatus). */
const statusFields: Readonly<Record<string, string>> = {
  failed_active_hc: "failed_active_health_check",
  failed_outlier_check: "failed_outlier_check",
  degraded_active_hc: "failed_active_degraded_check",
  pending_dynamic_removal: "pending_dynamic_removal",
  pending_active_hc: "pending_active_hc",
  excluded_via_immediate_hc_fail: "excluded_via_immediate_hc_fail",
  active_hc_timeout: "active_hc_timeout",
};

function healthStatus(host: Host): Readonly<Record<string, unknown>> {
  const fields = healthFlags(host).flatMap((flag) => statusFields[flag] ?? []);
  const edsHealthStatus = host.healthy ? (host.degraded ? "DEGRADED" : "HEALTHY") : "UNHEALTHY";
  return { ...Object.fromEntries(fields.map((field) => [field, true])), eds_health_status: edsHealthStatus };
}

function hostLines(cluster: RuntimeCluster, host: Host): string[] {
  const counters = [...hostCounters(host)].sort((a, b) => (a.name < b.name ? -1 : 1));
  const attributes = [
    `hostname::${host.hostname}`,
    `health_flags::${flagsText(host)}`,
    `weight::${host.weight}`,
    "region::",
    "zone::",
    "sub_zone::",
    "canary::false",
    `priority::${host.priority}`,
    `success_rate::${host.outlier?.externalRate.percent ?? -1}`,
    `local_origin_success_rate::${host.outlier?.localOriginRate.percent ?? -1}`,
  ];
  return [...counters.map(({ name, value }) => `${name}::${value}`), ...attributes].map(
    (line) => `${cluster.name}::${host.addressText}::${line}`,
  );
}

function clusterLines(cluster: RuntimeCluster, addedViaApi: boolean): string[] {
  const lines = [`observability_name::${cluster.observabilityName}`];
  for (const [index, value] of limits(cluster).entries())
    lines.push(`default_priority::${limitNames[index]}::${value}`);
  for (const [index, value] of highPriorityDefaults.entries()) {
    lines.push(`high_priority::${limitNames[index]}::${value}`);
  }
  lines.push(`added_via_api::${addedViaApi}`);
  return [
    ...lines.map((line) => `${cluster.name}::${line}`),
    ...cluster.hosts.flatMap((host) => hostLines(cluster, host)),
  ];
}

function threshold(values: readonly number[]): Record<string, number> {
  return Object.fromEntries(values.map((value, index) => [limitNames[index]!, value]));
}

function clusterJson(cluster: RuntimeCluster, addedViaApi: boolean): unknown {
  return {
    name: cluster.name,
    ...(addedViaApi && { added_via_api: true }),
    host_statuses: cluster.hosts.map((host) => ({
      address:
        host.address.type === "ip"
          ? addressJson(host.address.ip, host.address.port)
          : { pipe: { path: host.address.path } },
      // Fields with default values stay out, as in all JSON of Envoy.
      stats: hostCounters(host).map(({ name, value, isGauge }) => ({
        ...(isGauge && { type: "GAUGE" }),
        ...(value !== 0 && { value: String(value) }),
        name,
      })),
      health_status: healthStatus(host),
      weight: host.weight,
      ...(host.priority !== 0 && { priority: host.priority }),
      ...(host.hostname !== "" && { hostname: host.hostname }),
      locality: {},
    })),
    circuit_breakers: {
      thresholds: [threshold(limits(cluster)), { priority: "HIGH", ...threshold(highPriorityDefaults) }],
    },
    observability_name: cluster.observabilityName,
  };
}

function isAddedViaApi({ records }: AdminTargets, name: string): boolean {
  return records.clusters.get(name)?.isStatic !== true;
}

export const clustersPage: AdminPage = {
  path: "/clusters",
  help: "upstream cluster status",
  parameters: [["filter", "Regular expression (Google re2) for filtering clusters by name"]],
  handle: (query, targets) => {
    const filter = parameter(query, "filter");
    let accepts = (_name: string): boolean => true;
    if (filter !== undefined) {
      try {
        const regex = compileRe2(filter);
        accepts = (name) => regex.test(name);
      } catch (error) {
        return text(`Invalid re2 regex: ${error instanceof Error ? error.message : String(error)}\n`, 400);
      }
    }
    // Those of the configuration: google_grpc's has no record, as it is no cluster in Envoy.
    const isConfigured = (name: string): boolean => targets.records.clusters.get(name) !== undefined;
    const clusters = [...targets.owner.clusters()].filter(({ name }) => isConfigured(name) && accepts(name));
    if (query.get("format") === "json") {
      return json({
        cluster_statuses: clusters.map((cluster) => clusterJson(cluster, isAddedViaApi(targets, cluster.name))),
      });
    }
    const lines = clusters.flatMap((cluster) => clusterLines(cluster, isAddedViaApi(targets, cluster.name)));
    return text(lines.map((line) => `${line}\n`).join(""));
  },
};
