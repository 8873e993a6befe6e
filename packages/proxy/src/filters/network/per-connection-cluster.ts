// Where a filter leaves the name of the cluster that a TCP proxy behind it takes (Envoy: `PerConnectionCluster`).
export const perConnectionClusterKey = "envoy.tcp_proxy.cluster";
