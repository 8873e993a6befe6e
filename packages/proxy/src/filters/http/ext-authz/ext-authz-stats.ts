// The filter's counters under Envoy's names: `http.<connection manager>.ext_authz.<prefix>ok`, and those of the cluster
// that the request was for, `cluster.<name>.ext_authz.ok`.
import type { Counter, MetricRegistry } from "@tulle/telemetry";
import { type Counters, eachOf } from "../../../stats/stat-description.ts";

const names = {
  ok: "ok",
  denied: "denied",
  error: "error",
  disabled: "disabled",
  failureModeAllowed: "failure_mode_allowed",
  ignoredMetadata: "ignored_dynamic_metadata",
} as const;

const clusterNames = {
  ok: "ok",
  denied: "denied",
  error: "error",
  failureModeAllowed: "failure_mode_allowed",
} as const;

export interface ExtAuthzStats extends Counters<typeof names> {
  ofCluster(name: string): Counters<typeof clusterNames>;
}

export function makeExtAuthzStats(metrics: MetricRegistry, managerPrefix: string, ownPrefix: string): ExtAuthzStats {
  const prefix = ownPrefix === "" ? "" : `${ownPrefix}.`;
  const own = (stat: string): Counter =>
    metrics.counter({
      name: `envoy_http_ext_authz_${stat}`,
      labels: {
        envoy_http_conn_manager_prefix: managerPrefix,
        ...(ownPrefix !== "" && { envoy_ext_authz_prefix: ownPrefix }),
      },
      statName: `http.${managerPrefix.replaceAll(":", "_")}.ext_authz.${prefix}${stat}`,
    });
  const byCluster = new Map<string, Counters<typeof clusterNames>>();
  return {
    ...eachOf(names, own),
    ofCluster(name) {
      let counters = byCluster.get(name);
      if (counters === undefined) byCluster.set(name, (counters = clusterCounters(metrics, name, ownPrefix)));
      return counters;
    },
  };
}

function clusterCounters(metrics: MetricRegistry, cluster: string, ownPrefix: string): Counters<typeof clusterNames> {
  const prefix = ownPrefix === "" ? "" : `${ownPrefix}.`;
  return eachOf(clusterNames, (stat) =>
    metrics.counter({
      name: `envoy_cluster_ext_authz_${stat}`,
      labels: { envoy_cluster_name: cluster, ...(ownPrefix !== "" && { envoy_ext_authz_prefix: ownPrefix }) },
      statName: `cluster.${cluster.replaceAll(":", "_")}.ext_authz.${prefix}${stat}`,
    }),
  );
}
