// Operators that Envoy knows and that have no value here, each with its reason: they are `-` in a line, so that a
// format written for Envoy is taken.

const notMetered = "what a single stream takes on the wire is not counted";
const notInspected = "the hello of TLS is not fingerprinted";
const notTold = "the runtime does not tell it";
const noQuic = "HTTP/3 alone has it";
const noInternal = "there are no internal listeners";
const noAttemptIds = "the connections of tries before the last are not remembered";

export const unavailableOperators: Readonly<Record<string, string>> = {
  DOWNSTREAM_WIRE_BYTES_SENT: notMetered,
  DOWNSTREAM_WIRE_BYTES_RECEIVED: notMetered,
  DOWNSTREAM_HEADER_BYTES_SENT: notMetered,
  DOWNSTREAM_HEADER_BYTES_RECEIVED: notMetered,
  DOWNSTREAM_DECOMPRESSED_HEADER_BYTES_SENT: notMetered,
  DOWNSTREAM_DECOMPRESSED_HEADER_BYTES_RECEIVED: notMetered,
  UPSTREAM_WIRE_BYTES_SENT: notMetered,
  UPSTREAM_WIRE_BYTES_RECEIVED: notMetered,
  UPSTREAM_HEADER_BYTES_SENT: notMetered,
  UPSTREAM_HEADER_BYTES_RECEIVED: notMetered,
  UPSTREAM_DECOMPRESSED_HEADER_BYTES_SENT: notMetered,
  UPSTREAM_DECOMPRESSED_HEADER_BYTES_RECEIVED: notMetered,
  TLS_JA3_FINGERPRINT: notInspected,
  TLS_JA4_FINGERPRINT: notInspected,
  DOWNSTREAM_TLS_GROUP: notTold,
  UPSTREAM_TLS_GROUP: notTold,
  DOWNSTREAM_PEER_OTHERNAME_SAN: "certificates of the mesh have none",
  DOWNSTREAM_LOCAL_OTHERNAME_SAN: "certificates of the mesh have none",
  DOWNSTREAM_CX_RTT: notTold,
  DOWNSTREAM_HANDSHAKE_DURATION: "the handshake is not timed",
  UPSTREAM_CONNECTION_POOL_READY_DURATION: "the wait for a connection is not timed",
  DOWNSTREAM_LOCAL_CLOSE_REASON: "%CONNECTION_TERMINATION_DETAILS% says it",
  DOWNSTREAM_DETECTED_CLOSE_TYPE: notTold,
  UPSTREAM_LOCAL_CLOSE_REASON: notTold,
  UPSTREAM_DETECTED_CLOSE_TYPE: notTold,
  UPSTREAM_CONNECTION_ID: noAttemptIds,
  UPSTREAM_CONNECTION_IDS_ATTEMPTED: noAttemptIds,
  UPSTREAM_SERVER_NAME: notTold,
  UPSTREAM_REMOTE_ADDRESS_ENDPOINT_ID: noInternal,
  DOWNSTREAM_LOCAL_ADDRESS_ENDPOINT_ID: noInternal,
  DOWNSTREAM_DIRECT_LOCAL_ADDRESS_ENDPOINT_ID: noInternal,
  ROUNDTRIP_DURATION: noQuic,
  VIRTUAL_CLUSTER_NAME: "virtual clusters are for statistics alone, and are not read",
  CUSTOM_FLAGS: "no filter here sets one",
};
