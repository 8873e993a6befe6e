// Istio's formats of access logs (Istio 1.31: EnvoyTextLogFormat, EnvoyJSONLogFormatIstio), and the revision of the
// routes behind them.

export const revisionOperator = "%METADATA(VIRTUAL_HOST:tulle:revision)%";

export const defaultTextLog =
  `[%START_TIME%] "%REQ(:METHOD)% %REQ(X-ENVOY-ORIGINAL-PATH?:PATH)% %PROTOCOL%" %RESPONSE_CODE% %RESPONSE_FLAGS% ` +
  `%RESPONSE_CODE_DETAILS% %CONNECTION_TERMINATION_DETAILS% "%UPSTREAM_TRANSPORT_FAILURE_REASON%" %BYTES_RECEIVED% ` +
  `%BYTES_SENT% %DURATION% %RESP(X-ENVOY-UPSTREAM-SERVICE-TIME)% "%REQ(X-FORWARDED-FOR)%" "%REQ(USER-AGENT)%" ` +
  `"%REQ(X-REQUEST-ID)%" "%REQ(:AUTHORITY)%" "%UPSTREAM_HOST%" %UPSTREAM_CLUSTER_RAW% %UPSTREAM_LOCAL_ADDRESS% ` +
  `%DOWNSTREAM_LOCAL_ADDRESS% %DOWNSTREAM_REMOTE_ADDRESS% %REQUESTED_SERVER_NAME% %ROUTE_NAME% ` +
  `${revisionOperator}\n`;

export const defaultJsonLog: Readonly<Record<string, string>> = {
  start_time: "%START_TIME%",
  route_name: "%ROUTE_NAME%",
  method: "%REQ(:METHOD)%",
  path: "%REQ(X-ENVOY-ORIGINAL-PATH?:PATH)%",
  protocol: "%PROTOCOL%",
  response_code: "%RESPONSE_CODE%",
  response_flags: "%RESPONSE_FLAGS%",
  response_code_details: "%RESPONSE_CODE_DETAILS%",
  connection_termination_details: "%CONNECTION_TERMINATION_DETAILS%",
  bytes_received: "%BYTES_RECEIVED%",
  bytes_sent: "%BYTES_SENT%",
  duration: "%DURATION%",
  upstream_service_time: "%RESP(X-ENVOY-UPSTREAM-SERVICE-TIME)%",
  x_forwarded_for: "%REQ(X-FORWARDED-FOR)%",
  user_agent: "%REQ(USER-AGENT)%",
  request_id: "%REQ(X-REQUEST-ID)%",
  authority: "%REQ(:AUTHORITY)%",
  upstream_host: "%UPSTREAM_HOST%",
  upstream_cluster: "%UPSTREAM_CLUSTER_RAW%",
  upstream_local_address: "%UPSTREAM_LOCAL_ADDRESS%",
  downstream_local_address: "%DOWNSTREAM_LOCAL_ADDRESS%",
  downstream_remote_address: "%DOWNSTREAM_REMOTE_ADDRESS%",
  configuration_revision: revisionOperator,
  requested_server_name: "%REQUESTED_SERVER_NAME%",
  upstream_transport_failure_reason: "%UPSTREAM_TRANSPORT_FAILURE_REASON%",
};
