// Rows of the options of protocols, which both sides of the proxy have (config.core.v3, protocol.proto).
import type { FieldRows } from "./field-row.ts";

export const protocolFields: FieldRows = {
  "envoy.config.core.v3.HttpProtocolOptions": {
    used: `idle_timeout max_headers_count max_requests_per_connection headers_with_underscores_action
      max_connection_duration max_stream_duration`,
    harmless: { max_response_headers_kb: "the codec's own limit of 80 KiB holds" },
  },
  "envoy.config.core.v3.Http2ProtocolOptions": {
    used: `connection_keepalive hpack_table_size max_concurrent_streams initial_stream_window_size
      initial_connection_window_size allow_connect max_outbound_frames max_outbound_control_frames
      max_consecutive_inbound_frames_with_empty_payload max_inbound_priority_frames_per_stream
      max_inbound_window_update_frames_per_data_frame_sent`,
    harmless: {
      stream_error_on_invalid_http_messaging: "a bad message ends its own stream alone, as RFC 9113 §8.1.1 has it",
      override_stream_error_on_invalid_http_message: "a bad message ends its own stream alone",
      use_oghttp2_codec: "Envoy's own choice of codec",
      max_metadata_size: "metadata frames are dropped",
      enable_huffman_encoding: "performance only",
    },
    warned: {
      allow_metadata: "metadata frames are dropped",
      custom_settings_parameters: "the proxy's own settings are sent",
    },
  },
  "envoy.config.core.v3.KeepaliveSettings": {
    used: "interval timeout interval_jitter",
    harmless: {
      connection_idle_interval: "a ping ahead of a stream on an idle connection, which nobody here waits on",
    },
  },
  "envoy.config.core.v3.Http1ProtocolOptions": {
    used: "allow_absolute_url accept_http_10 enable_trailers",
    harmless: {
      override_stream_error_on_invalid_http_message: "the connection is closed after a bad message",
      use_balsa_parser: "Envoy's own choice of parser",
      allow_custom_methods: "any token is a method here",
    },
    warned: { header_key_format: "names go out in lower case, which RFC 9110 §5.1 makes equal" },
  },
};
