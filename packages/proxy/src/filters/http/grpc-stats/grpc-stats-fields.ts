// Rows of the gRPC statistics (extensions.filters.http.grpc_stats.v3).
import { FilterConfigSchema } from "@tulle/xds/envoy/extensions/filters/http/grpc_stats/v3/config_pb";
import { checkedMessage } from "../../../fields/checked-message.ts";

export const grpcStatsMessage = checkedMessage(FilterConfigSchema, {
  [FilterConfigSchema.typeName]: `emit_filter_state individual_method_stats_allowlist stats_for_all_methods
    enable_upstream_stats replace_dots_in_grpc_service_name`,
  "envoy.config.core.v3.GrpcMethodList": "services",
  "envoy.config.core.v3.GrpcMethodList.Service": "name method_names",
});
