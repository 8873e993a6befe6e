// Rows of routes (config.route.v3).
import {
  FilterConfigSchema,
  RouteSchema,
  VirtualHostSchema,
} from "@tulle/xds/envoy/config/route/v3/route_components_pb";
import { RouteConfigurationSchema } from "@tulle/xds/envoy/config/route/v3/route_pb";
import { checkedMessage } from "../fields/checked-message.ts";
import type { FieldRows } from "../fields/field-row.ts";
import { matcherFields } from "../fields/matchers/matcher-fields.ts";
import { sharedFields } from "../fields/shared-fields.ts";
import { customTagFields, routeTracingFields } from "../tracing/tracing-fields.ts";

const headerChanges =
  "request_headers_to_add request_headers_to_remove response_headers_to_add response_headers_to_remove";
const noRateLimit = "descriptors act only on a rate limit filter, which is refused by itself";

export const routeFields: FieldRows = {
  "envoy.config.route.v3.RouteConfiguration": {
    used: `name virtual_hosts validate_clusters most_specific_header_mutations_wins ignore_port_in_host_matching
      typed_per_filter_config max_direct_response_body_size_bytes metadata ${headerChanges}`,
    harmless: { internal_only_headers: "edge sanitising of our own removes only x-envoy-*" },
  },
  "envoy.config.route.v3.VirtualHost": {
    used: `name domains routes require_tls typed_per_filter_config retry_policy include_request_attempt_count
      include_attempt_count_in_response metadata ${headerChanges}`,
    harmless: { virtual_clusters: "statistics only", rate_limits: noRateLimit },
  },
  "envoy.config.route.v3.Route": {
    used: `name match route redirect direct_response metadata typed_per_filter_config tracing decorator ${headerChanges}`,
    harmless: { stat_prefix: "statistics only" },
  },
  "envoy.config.route.v3.RouteAction": {
    used: `cluster cluster_header weighted_clusters cluster_not_found_response_code prefix_rewrite regex_rewrite
      host_rewrite_literal auto_host_rewrite host_rewrite_header append_x_forwarded_host timeout idle_timeout
      retry_policy upgrade_configs max_stream_duration host_rewrite_path_regex priority max_grpc_timeout
      grpc_timeout_offset`,
    harmless: {
      rate_limits: noRateLimit,
      include_vh_rate_limits: noRateLimit,
      hash_policy: "read only by hashing load balancers, which are refused by themselves",
    },
  },
  "envoy.config.route.v3.RouteAction.UpgradeConfig": { used: "upgrade_type enabled connect_config" },
  "envoy.config.route.v3.RouteAction.UpgradeConfig.ConnectConfig": { used: "" },
  "envoy.config.route.v3.RouteAction.MaxStreamDuration": {
    used: "max_stream_duration grpc_timeout_header_max grpc_timeout_header_offset",
  },
  "envoy.config.route.v3.WeightedCluster": {
    used: "clusters total_weight header_name",
    harmless: { runtime_key_prefix: "no runtime layer overrides weights" },
  },
  "envoy.config.route.v3.WeightedCluster.ClusterWeight": {
    used: `name cluster_header weight typed_per_filter_config host_rewrite_literal ${headerChanges}`,
  },
  "envoy.config.route.v3.RetryPolicy": {
    used: `retry_on num_retries per_try_timeout per_try_idle_timeout retry_host_predicate
      host_selection_retry_max_attempts retriable_status_codes retry_back_off retriable_headers
      retriable_request_headers`,
  },
  "envoy.config.route.v3.RedirectAction": {
    used: `https_redirect scheme_redirect host_redirect port_redirect path_redirect prefix_rewrite regex_rewrite
      response_code strip_query`,
  },
  "envoy.config.route.v3.DirectResponseAction": { used: "status body" },
  "envoy.config.route.v3.RetryPolicy.RetryHostPredicate": "name typed_config",
  "envoy.config.route.v3.RetryPolicy.RetryBackOff": "base_interval max_interval",
  "envoy.config.route.v3.FilterConfig": { used: "config is_optional", told: "disabled" },
};

const tables = [routeFields, matcherFields, sharedFields, customTagFields, routeTracingFields] as const;

export const routeConfigurationMessage = checkedMessage(RouteConfigurationSchema, ...tables);
export const virtualHostMessage = checkedMessage(VirtualHostSchema, ...tables);
export const routeMessage = checkedMessage(RouteSchema, ...tables);
export const routeFilterConfigMessage = checkedMessage(FilterConfigSchema, ...tables);
