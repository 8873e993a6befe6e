// Rows of the TCP proxy (extensions.filters.network.tcp_proxy.v3).
import { TcpProxySchema } from "@tulle/xds/envoy/extensions/filters/network/tcp_proxy/v3/tcp_proxy_pb";
import { accessLogFields } from "../../../fields/access-log-fields.ts";
import { checkedMessage } from "../../../fields/checked-message.ts";
import type { FieldRows } from "../../../fields/field-row.ts";
import { matcherFields } from "../../../fields/matchers/matcher-fields.ts";
import { sharedFields } from "../../../fields/shared-fields.ts";

const tcpProxyFields: FieldRows = {
  "envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy": {
    used: `stat_prefix cluster weighted_clusters idle_timeout access_log max_connect_attempts
      access_log_options access_log_flush_interval flush_access_log_on_connected
      max_downstream_connection_duration max_downstream_connection_duration_jitter_percentage`,
    harmless: { hash_policy: "read only by hashing load balancers, which are refused by themselves" },
    warned: {
      metadata_match: "every host of the cluster is taken, since there are no subsets of hosts",
    },
  },
  "envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy.TcpAccessLogOptions":
    "access_log_flush_interval flush_access_log_on_connected flush_access_log_on_start",
  "envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy.WeightedCluster": { used: "clusters" },
  "envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy.WeightedCluster.ClusterWeight": {
    used: "name weight",
    warned: { metadata_match: "every host of the cluster is taken, since there are no subsets of hosts" },
  },
};

export const tcpProxyMessage = checkedMessage(
  TcpProxySchema,
  tcpProxyFields,
  accessLogFields,
  matcherFields,
  sharedFields,
);
