// Rows of active health checks (config.core.v3.HealthCheck).
import type { FieldRows } from "../fields/field-row.ts";

const health = "envoy.config.core.v3.HealthCheck";

export const healthCheckFields: FieldRows = {
  [health]: {
    used: `timeout interval initial_jitter interval_jitter interval_jitter_percent unhealthy_threshold
      healthy_threshold reuse_connection http_health_check tcp_health_check grpc_health_check no_traffic_interval
      no_traffic_healthy_interval unhealthy_interval unhealthy_edge_interval healthy_edge_interval event_log_path
      always_log_health_check_failures always_log_health_check_success tls_options transport_socket_match_criteria`,
    harmless: {
      name: "tells several checks of a cluster apart, and there is one",
      alt_port: "Envoy does not read it",
    },
    warned: {
      event_logger: "events go to the log, and to the file of event_log_path",
      event_service: "events go to the log, and to the file of event_log_path",
    },
    told: "custom_health_check",
  },
  [`${health}.Payload`]: "text binary",
  [`${health}.HttpHealthCheck`]: {
    used: `host path send receive response_buffer_size request_headers_to_add request_headers_to_remove
      expected_statuses retriable_statuses codec_client_type service_name_matcher method`,
  },
  [`${health}.TcpHealthCheck`]: "send receive",
  [`${health}.GrpcHealthCheck`]: "service_name authority initial_metadata",
  [`${health}.TlsOptions`]: "alpn_protocols",
};
