// Access logs as messages: their rows, and those of the conditions under which a line is written.
import { FileAccessLogSchema } from "@tulle/xds/envoy/extensions/access_loggers/file/v3/file_pb";
import { ExpressionFilterSchema } from "@tulle/xds/envoy/extensions/access_loggers/filters/cel/v3/cel_pb";
import {
  StderrAccessLogSchema,
  StdoutAccessLogSchema,
} from "@tulle/xds/envoy/extensions/access_loggers/stream/v3/stream_pb";
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
  "envoy.extensions.access_loggers.stream.v3.StdoutAccessLog": { used: "log_format" },
  "envoy.extensions.access_loggers.stream.v3.StderrAccessLog": { used: "log_format" },
  [`${log}.AccessLogFilter`]: {
    used: `status_code_filter duration_filter not_health_check_filter runtime_filter and_filter or_filter header_filter
      response_flag_filter extension_filter metadata_filter grpc_status_filter`,
    told: "traceable_filter log_type_filter",
  },
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

const tables = [accessLogFields, matcherFields, sharedFields] as const;

export const fileAccessLogMessage = checkedMessage(FileAccessLogSchema, ...tables);
export const stdoutAccessLogMessage = checkedMessage(StdoutAccessLogSchema, ...tables);
export const stderrAccessLogMessage = checkedMessage(StderrAccessLogSchema, ...tables);
export const logExpressionMessage = checkedMessage(ExpressionFilterSchema, ...tables);
