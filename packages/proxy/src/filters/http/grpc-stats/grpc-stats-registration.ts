// gRPC statistics in the table of filters: `envoy.filters.http.grpc_stats`.
import {
  type FilterConfig,
  FilterConfigSchema,
} from "@tulle/xds/envoy/extensions/filters/http/grpc_stats/v3/config_pb";
import { type CountedMethods, GrpcCallStats } from "../../../cluster/grpc-call-stats.ts";
import { decodeTypedConfig } from "../../../fields/typed-config.ts";
import type { FilterRegistration } from "../filter-registration.ts";
import { grpcStatsMessage } from "./grpc-stats-fields.ts";
import { GrpcStatsFilter } from "./grpc-stats-filter.ts";

export const grpcStatsRegistration: FilterRegistration = {
  types: [FilterConfigSchema.typeName],
  isTerminal: false,
  compile(config, { name, scope, place, problems }) {
    const message = decodeTypedConfig(grpcStatsMessage, config, place, problems);
    if (message === undefined) return undefined;
    const stats = new GrpcCallStats({
      metrics: scope.metrics,
      protocol: "grpc",
      methods: countedMethods(message),
      replacesDots: message.replaceDotsInGrpcServiceName,
    });
    const { emitFilterState, enableUpstreamStats } = message;
    return new GrpcStatsFilter({ name, stats, tellsMessages: emitFilterState, timesUpstream: enableUpstreamStats });
  },
};

function countedMethods({ perMethodStatSpecifier: { case: which, value } }: FilterConfig): CountedMethods {
  if (which === "statsForAllMethods") return value.value ? "all" : new Set();
  if (which === undefined) return new Set();
  return new Set(value.services.flatMap(({ name, methodNames }) => methodNames.map((method) => `${name}/${method}`)));
}
