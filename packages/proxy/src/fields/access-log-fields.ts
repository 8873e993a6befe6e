// Access logs as messages: their rows, and those of the conditions under which a line is written.
import { FileAccessLogSchema } from "@tulle/xds/envoy/extensions/access_loggers/file/v3/file_pb";
import { ExpressionFilterSchema } from "@tulle/xds/envoy/extensions/access_loggers/filters/cel/v3/cel_pb";
import { OpenTelemetryAccessLogConfigSchema } from "@tulle/xds/envoy/extensions/access_loggers/open_telemetry/v3/logs_service_pb";
import {
  StderrAccessLogSchema,
  StdoutAccessLogSchema,
} from "@tulle/xds/envoy/extensions/access_loggers/stream/v3/stream_pb";
import {
  HttpGrpcAccessLogConfigSchema,
  TcpGrpcAccessLogConfigSchema,
} from "@tulle/xds/envoy/extensions/access_loggers/grpc/v3/als_pb";
import { checkedMessage } from "./checked-message.ts";
import { type FieldRows, noRuntime } from "./field-row.ts";
import { matcherFields } from "./matchers/matcher-fields.ts";
import { sharedFields } from "./shared-fields.ts";

const log = "envoy.config.accesslog.v3";

/** Of everything that holds access logs. */
export const accessLogFields: FieldRows = {
  "envoy.config.accesslog.v3.AccessLog": { used: "name filter typed_config" },
  "envoy.extensions.access_loggers.file.v3.FileAccessLog": {
    used: "path format json_format typed_json_format log_format",
  },
  "envoy.extensions.access_loggers.filters.cel.v3.ExpressionFilter": { used: "expression" },
  "envoy.extensions.access_loggers.open_telemetry.v3.OpenTelemetryAccessLogConfig": {
    used: `common_config grpc_service http_service log_name body attributes resource_attributes disable_builtin_labels
      stat_prefix formatters buffer_flush_interval buffer_size_bytes`,
    warned: {
      resource_detectors: "the resource is what resource_attributes say",
      filter_state_objects_to_log: "no filter of this proxy leaves objects there",
      custom_tags: "attributes say the same",
    },
  },
  "envoy.extensions.access_loggers.grpc.v3.CommonGrpcAccessLogConfig": {
    used: "log_name grpc_service buffer_flush_interval buffer_size_bytes filter_state_objects_to_log",
    harmless: { transport_api_version: "there is one version" },
    warned: {
      grpc_stream_retry_policy: "what a collector does not take is dropped",
      custom_tags: "are not sent",
    },
  },
  "envoy.extensions.access_loggers.grpc.v3.HttpGrpcAccessLogConfig": {
    used: `common_config additional_request_headers_to_log additional_response_headers_to_log
      additional_response_trailers_to_log`,
  },
  "envoy.extensions.access_loggers.grpc.v3.TcpGrpcAccessLogConfig": { used: "common_config" },
  "envoy.extensions.access_loggers.stream.v3.StdoutAccessLog": { used: "log_format" },
  "envoy.extensions.access_loggers.stream.v3.StderrAccessLog": { used: "log_format" },
  [`${log}.AccessLogFilter`]: {
    used: `status_code_filter duration_filter not_health_check_filter runtime_filter and_filter or_filter header_filter
      response_flag_filter extension_filter metadata_filter grpc_status_filter traceable_filter log_type_filter`,
  },
  [`${log}.LogTypeFilter`]: "types exclude",
  [`${log}.TraceableFilter`]: "",
  [`${log}.StatusCodeFilter`]: "comparison",
  [`${log}.DurationFilter`]: "comparison",
  [`${log}.ComparisonFilter`]: "op value",
  [`${log}.NotHealthCheckFilter`]: "",
  [`${log}.RuntimeFilter`]: {
    used: "percent_sampled",
    harmless: { runtime_key: noRuntime, use_independent_randomness: "each line is drawn for itself" },
  },
  [`${log}.AndFilter`]: "filters",
  [`${log}.OrFilter`]: "filters",
  [`${log}.HeaderFilter`]: "header",
  [`${log}.ResponseFlagFilter`]: "flags",
  [`${log}.GrpcStatusFilter`]: "statuses exclude",
  [`${log}.ExtensionFilter`]: "name typed_config",
  [`${log}.MetadataFilter`]: "matcher match_if_key_not_found",
};

/** A value of OpenTelemetry, as a template. */
const otlpFields: FieldRows = {
  "opentelemetry.proto.common.v1.AnyValue": {
    used: "string_value array_value kvlist_value",
    told: "bool_value int_value double_value bytes_value",
  },
  "opentelemetry.proto.common.v1.ArrayValue": "values",
  "opentelemetry.proto.common.v1.KeyValueList": "values",
  "opentelemetry.proto.common.v1.KeyValue": "key value",
};

const tables = [accessLogFields, otlpFields, matcherFields, sharedFields] as const;

export const fileAccessLogMessage = checkedMessage(FileAccessLogSchema, ...tables);
export const stdoutAccessLogMessage = checkedMessage(StdoutAccessLogSchema, ...tables);
export const stderrAccessLogMessage = checkedMessage(StderrAccessLogSchema, ...tables);
export const otlpAccessLogMessage = checkedMessage(OpenTelemetryAccessLogConfigSchema, ...tables);
export const httpGrpcAccessLogMessage = checkedMessage(HttpGrpcAccessLogConfigSchema, ...tables);
export const tcpGrpcAccessLogMessage = checkedMessage(TcpGrpcAccessLogConfigSchema, ...tables);
export const logExpressionMessage = checkedMessage(ExpressionFilterSchema, ...tables);
