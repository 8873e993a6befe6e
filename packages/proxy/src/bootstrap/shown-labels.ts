// The names of labels that a bootstrap's `stats_config` gives to what Envoy tags by itself. Istio's has its own tags
// and none of the default ones, so that its dashboards ask for `cluster_name` where Envoy says `envoy_cluster_name`.
import type { Bootstrap } from "@tulle/xds/envoy/config/bootstrap/v3/bootstrap_pb";

/** Default tags of Envoy's that the proxy's series carry, without `envoy.` (Envoy: TagNameValues). */
const defaultTags = [
  "cluster_name",
  "http_conn_manager_prefix",
  "listener_address",
  "response_code",
  "response_code_class",
  "tcp_prefix",
];

/** By the name with which a series was made. */
export function shownLabels({ statsConfig }: Pick<Bootstrap, "statsConfig">): ReadonlyMap<string, string> {
  if (statsConfig?.useAllDefaultTags !== false) return new Map();
  const named = new Set(statsConfig.statsTags.map(({ tagName }) => tagName));
  return new Map(defaultTags.filter((tag) => named.has(tag)).map((tag) => [`envoy_${tag}`, tag]));
}
