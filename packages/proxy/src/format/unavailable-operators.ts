// Operators that Envoy knows and that have no value here, each with its reason: they are `-` in a line, so that a
// format written for Envoy is taken.

export const unavailableOperators: Readonly<Record<string, string>> = {
  DOWNSTREAM_PEER_OTHERNAME_SAN: "certificates of the mesh have none",
  DOWNSTREAM_LOCAL_OTHERNAME_SAN: "certificates of the mesh have none",
  DOWNSTREAM_LOCAL_CLOSE_REASON: "%CONNECTION_TERMINATION_DETAILS% says it",
  UPSTREAM_LOCAL_CLOSE_REASON: "the runtime does not tell it",
  ROUNDTRIP_DURATION: "HTTP/3 alone has it",
  VIRTUAL_CLUSTER_NAME: "virtual clusters are for statistics alone, and are not read",
};
