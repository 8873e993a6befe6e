// Rows of listeners (config.listener.v3).
import { ListenerSchema } from "@tulle/xds/envoy/config/listener/v3/listener_pb";
import { accessLogFields } from "../fields/access-log-fields.ts";
import { checkedMessage } from "../fields/checked-message.ts";
import { type FieldRows, socketTuning } from "../fields/field-row.ts";
import { matcherFields } from "../fields/matchers/matcher-fields.ts";
import { sharedFields } from "../fields/shared-fields.ts";

const listenerFields: FieldRows = {
  "envoy.config.listener.v3.Listener": {
    used: `metadata name address additional_addresses stat_prefix filter_chains default_filter_chain
      per_connection_buffer_limit_bytes listener_filters listener_filters_timeout continue_on_listener_filters_timeout
      bind_to_port transparent deprecated_v1 access_log use_original_dst traffic_direction`,
    harmless: {
      drain_type: "drains on removal and on change either way",
      connection_balance_config: "one accepting thread",
      reuse_port: socketTuning,
      enable_reuse_port: socketTuning,
      tcp_backlog_size: socketTuning,
      tcp_fast_open_queue_length: socketTuning,
      max_connections_to_accept_per_socket_event: socketTuning,
      enable_mptcp: socketTuning,
      tcp_keepalive: socketTuning,
      ignore_global_conn_limit: "no global limit is set",
      stats_matcher: "statistics only",
    },
    warned: {
      freebind: "addresses must exist when the listener is bound",
      bypass_overload_manager: "limits of overload hold for every listener",
    },
  },
  "envoy.config.listener.v3.AdditionalAddress": { used: "address", harmless: { tcp_keepalive: socketTuning } },
  "envoy.config.listener.v3.Listener.DeprecatedV1": { used: "bind_to_port" },
  "envoy.config.listener.v3.FilterChain": {
    used: "filter_chain_match filters name metadata transport_socket transport_socket_connect_timeout",
  },
  "envoy.config.listener.v3.FilterChainMatch": {
    used: `destination_port prefix_ranges direct_source_prefix_ranges source_type source_prefix_ranges source_ports
      server_names transport_protocol application_protocols`,
  },
  "envoy.config.listener.v3.Filter": { used: "name typed_config" },
  "envoy.config.listener.v3.ListenerFilter": { used: "name typed_config filter_disabled" },
  "envoy.config.listener.v3.ListenerFilterChainMatchPredicate":
    "or_match and_match not_match any_match destination_port_range",
  "envoy.config.listener.v3.ListenerFilterChainMatchPredicate.MatchSet": "rules",
};

export const listenerMessage = checkedMessage(
  ListenerSchema,
  listenerFields,
  accessLogFields,
  matcherFields,
  sharedFields,
);
