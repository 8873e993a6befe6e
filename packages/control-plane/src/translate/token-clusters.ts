// Clusters of token endpoints outside the mesh: the gateway's own calls to OpenID providers elsewhere.
import type { Cluster } from "@tulle/xds/envoy/config/cluster/v3/cluster_pb";
import type { LoginProvider } from "../snapshot/browser-logins.ts";
import { tokenClusterName } from "./browser-login.ts";
import { outsideCluster } from "./outside-cluster.ts";

/** One for each origin. */
export function tokenClusters(providers: readonly LoginProvider[]): readonly Cluster[] {
  const byName = new Map(providers.map((provider) => [tokenClusterName(provider), provider]));
  return [...byName.values()].map(tokenCluster);
}

function tokenCluster(provider: LoginProvider): Cluster {
  const url = new URL(provider.tokenEndpoint);
  const isTls = url.protocol === "https:";
  return outsideCluster(tokenClusterName(provider), {
    host: url.hostname.replace(/^\[(.*)\]$/, "$1"),
    port: url.port === "" ? (isTls ? 443 : 80) : Number(url.port),
    tls: isTls ? { alpnProtocols: [] } : undefined,
  });
}
