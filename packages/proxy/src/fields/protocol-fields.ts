// Rows of the options of protocols, which both sides of the proxy have (config.core.v3, protocol.proto).
import type { FieldRows } from "./field-row.ts";

export const protocolFields: FieldRows = {
  "envoy.config.core.v3.HttpProtocolOptions": {
    used: `idle_timeout max_headers_count max_requests_per_connection headers_with_underscores_action
      max_connection_duration max_stream_duration`,
    harmless: { max_response_headers_kb: "the codec's own limit of 80 KiB holds" },
  },
  "envoy.config.core.v3.Http2ProtocolOptions": {
    used: "connection_keepalive",
    harmless: {
      hpack_table_size: "performance only",
      max_concurrent_streams: "a connection carries few streams of the proxy's own",
      initial_stream_window_size: "performance only",
      initial_connection_window_size: "performance only",
      allow_connect: "the proxy's own calls are no CONNECT",
      max_outbound_frames: "Node's own limits hold",
      max_outbound_control_frames: "Node's own limits hold",
      max_consecutive_inbound_frames_with_empty_payload: "Node's own limits hold",
      max_inbound_priority_frames_per_stream: "Node's own limits hold",
      max_inbound_window_update_frames_per_data_frame_sent: "Node's own limits hold",
      stream_error_on_invalid_http_messaging: "one stream a connection",
      override_stream_error_on_invalid_http_message: "one stream a connection",
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
