// Istio's metrics in the table of filters. The configuration is Istio's own message, in a TypedStruct or as its bytes,
// marked `is_optional`, so that a stock Envoy skips the filter and Istio's Envoy understands it.
import { celValue } from "../../../cel/cel-value.ts";
import type { CompileScope } from "../../../fields/compile-scope.ts";
import type { Place, Problems } from "../../../fields/problems.ts";
import type { FilterRegistration } from "../filter-registration.ts";
import { IstioStatsFilter } from "./istio-stats-filter.ts";
import { MetricOverrides } from "./metric-overrides.ts";
import { type PluginConfig, readPluginConfig } from "./plugin-config.ts";
import { rotationOf } from "./rotation.ts";
import { ownWorkloadLabels } from "./workload-labels.ts";

/** Istio's. */
const defaultReportIntervalMs = 5000;
/** A millisecond would tell of each stream a thousand times a second. */
const minReportIntervalMs = 100;

export const istioStatsRegistration: FilterRegistration = {
  types: ["stats.PluginConfig", "tulle.filters.http.istio_stats"],
  isTerminal: false,
  compile(config, { name, scope, isInbound, place, problems }) {
    const plugin = readPluginConfig(config, place, problems);
    const isWaypoint = plugin.reporter === "SERVER_GATEWAY";
    return new IstioStatsFilter({
      ...statsOptions(plugin, scope, place, problems),
      name,
      reporter: isWaypoint ? "waypoint" : isInbound ? "destination" : "source",
      usesHostHeader: !plugin.disableHostHeaderFallback,
    });
  },
};

/** What the metrics of requests and those of connections have in common. */
export function statsOptions(plugin: PluginConfig, scope: CompileScope, place: Place, problems: Problems) {
  const { metrics, clock, bootstrapNode: node, environment, redactedNames } = scope;
  const overrides = new MetricOverrides(plugin, celValue(node), redactedNames, place, problems);
  const rotation = rotationOf(metrics, clock);
  rotation.configure(plugin.rotationIntervalMs, plugin.gracefulDeletionIntervalMs);
  const version = node?.metadata?.["ISTIO_VERSION"];
  const tag = typeof version === "string" ? version : "unknown";
  metrics.gauge({ name: "istio_build", labels: { component: "proxy", tag } }).set(1);
  return {
    metrics,
    own: ownWorkloadLabels(environment),
    reportIntervalMs: Math.max(minReportIntervalMs, plugin.tcpReportingDurationMs ?? defaultReportIntervalMs),
    overrides: overrides.isEmpty ? undefined : overrides,
    rotation,
  };
}
