// Istio's metrics in the table of filters. The configuration is Istio's own message in a TypedStruct, marked
// `is_optional`, so that a stock Envoy skips the filter and Istio's Envoy understands it.
import type { FilterRegistration } from "../filter-registration.ts";
import { IstioStatsFilter } from "./istio-stats-filter.ts";
import { ownWorkloadLabels } from "./workload-labels.ts";

export const istioStatsRegistration: FilterRegistration = {
  types: ["stats.PluginConfig", "tulle.filters.http.istio_stats"],
  isTerminal: false,
  compile(config, { name, scope, isInbound, place, problems }) {
    if (config.form !== "json") {
      problems.error(place, "the configuration must be a TypedStruct");
      return undefined;
    }
    for (const field of Object.keys(config.json)) {
      if (field === "disable_host_header_fallback") continue;
      problems.warning(place.field(field), "ignored: the standard metrics are kept with their standard labels");
    }
    return new IstioStatsFilter({
      name,
      metrics: scope.metrics,
      reporter: isInbound ? "destination" : "source",
      own: ownWorkloadLabels(scope.environment),
      usesHostHeader: config.json["disable_host_header_fallback"] !== true,
    });
  },
};
