// Where a filter leaves the port at which a TCP proxy behind it finds the host that the connection's server name names,
// in clusters of the type dynamic_forward_proxy (Envoy: `envoy.upstream.dynamic_port`).
export const dynamicPortKey = "envoy.upstream.dynamic_port";
