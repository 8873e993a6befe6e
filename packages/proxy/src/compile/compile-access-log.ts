// Access logs of a connection manager: file, stdout and stderr, text or JSON, with Envoy's filters
// (config.accesslog.v3.AccessLog).
import type { JsonObject } from "@bufbuild/protobuf";
import type {
  AccessLog as AccessLogMessage,
  AccessLogFilter,
  ComparisonFilter,
} from "@tulle/xds/envoy/config/accesslog/v3/accesslog_pb";
import { ComparisonFilter_Op as Op } from "@tulle/xds/envoy/config/accesslog/v3/accesslog_pb";
import type { SubstitutionFormatString } from "@tulle/xds/envoy/config/core/v3/substitution_format_string_pb";
import { FileAccessLogSchema } from "@tulle/xds/envoy/extensions/access_loggers/file/v3/file_pb";
import {
  StderrAccessLogSchema,
  StdoutAccessLogSchema,
} from "@tulle/xds/envoy/extensions/access_loggers/stream/v3/stream_pb";
import { type TextFormat, compileJsonFormat, compileTextFormat } from "../format/substitution-format.ts";
import { type ResponseFlag, responseFlags } from "../http/response-flags.ts";
import type { StreamInfo } from "../http/stream-info.ts";
import type { AccessLog } from "../runtime/proxy-runtime.ts";
import type { CompileScope, LogFile } from "./compile-scope.ts";
import { fractionOf } from "./matchers/fraction.ts";
import { compileRequestHeaderMatcher } from "./matchers/header-matcher.ts";
import type { Place, Problems } from "./problems.ts";
import { decodeTypedConfig, typeUrlOf, unwrapTypedConfig } from "./typed-config.ts";

/** Envoy's default (docs: configuration/observability/access_log/usage, "Default Format String"). */
export const defaultAccessLogFormat =
  '[%START_TIME%] "%REQ(:METHOD)% %REQ(X-ENVOY-ORIGINAL-PATH?:PATH)% %PROTOCOL%" %RESPONSE_CODE% %RESPONSE_FLAGS% ' +
  '%BYTES_RECEIVED% %BYTES_SENT% %DURATION% %RESP(X-ENVOY-UPSTREAM-SERVICE-TIME)% "%REQ(X-FORWARDED-FOR)%" ' +
  '"%REQ(USER-AGENT)%" "%REQ(X-REQUEST-ID)%" "%REQ(:AUTHORITY)%" "%UPSTREAM_HOST%"\n';

interface LogTarget {
  readonly path: string;
  readonly format: TextFormat;
}

export function compileAccessLog(
  message: AccessLogMessage,
  scope: CompileScope,
  place: Place,
  problems: Problems,
): AccessLog | undefined {
  const target = compileTarget(message, scope, place, problems);
  const accepts = message.filter && compileFilter(message.filter, scope, place.field("filter"), problems);
  if (target === undefined || problems.hasErrors) return undefined;
  let file: LogFile;
  try {
    file = scope.openAccessLog(target.path);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    problems.error(place, `unable to open file '${target.path}': ${reason}`);
    return undefined;
  }
  const { format } = target;
  return {
    log: (info) => {
      if (accepts !== undefined && !accepts(info)) return;
      file.write(format(info, info.request, info.response));
    },
  };
}

function compileTarget(
  message: AccessLogMessage,
  scope: CompileScope,
  place: Place,
  problems: Problems,
): LogTarget | undefined {
  const config = message.configType.case === "typedConfig" ? unwrapTypedConfig(message.configType.value) : undefined;
  const at = place.field("typed_config");
  switch (config?.typeUrl) {
    case typeUrlOf(FileAccessLogSchema): {
      const file = decodeTypedConfig(FileAccessLogSchema, config, at, problems);
      if (file === undefined) return undefined;
      if (file.path === "") problems.error(at.field("path"), "value length must be at least 1 characters");
      return { path: file.path, format: fileFormat(file.accessLogFormat, scope, at, problems) };
    }
    case typeUrlOf(StdoutAccessLogSchema):
    case typeUrlOf(StderrAccessLogSchema): {
      const isStdout = config.typeUrl === typeUrlOf(StdoutAccessLogSchema);
      const stream = decodeTypedConfig(isStdout ? StdoutAccessLogSchema : StderrAccessLogSchema, config, at, problems);
      const format = stream?.accessLogFormat.case === "logFormat" ? stream.accessLogFormat.value : undefined;
      return {
        path: isStdout ? "/dev/stdout" : "/dev/stderr",
        format: substitutionFormat(format, scope, at.field("log_format"), problems),
      };
    }
    default:
      problems.error(
        place,
        `Didn't find a registered implementation for '${message.name}' with type URL: '${config?.typeUrl.replace(/^.*\//, "") ?? ""}'`,
      );
      return undefined;
  }
}

type FileFormat =
  | { case: "format"; value: string }
  | { case: "jsonFormat" | "typedJsonFormat"; value: JsonObject }
  | { case: "logFormat"; value: SubstitutionFormatString }
  | { case: undefined; value?: undefined };

function fileFormat(format: FileFormat, scope: CompileScope, place: Place, problems: Problems): TextFormat {
  switch (format.case) {
    case "format":
      return compileTextFormat(format.value, "-", scope, place.field("format"), problems);
    case "jsonFormat":
    case "typedJsonFormat":
      return compileJsonFormat(format.value, false, scope, place.field("json_format"), problems);
    case "logFormat":
      return substitutionFormat(format.value, scope, place.field("log_format"), problems);
    case undefined:
      return compileTextFormat(defaultAccessLogFormat, "-", scope, place, problems);
  }
}

/** Extensions that add operators which this proxy knows anyway. */
const knownFormatters = new Set([
  "type.googleapis.com/envoy.extensions.formatter.req_without_query.v3.ReqWithoutQuery",
  "type.googleapis.com/envoy.extensions.formatter.metadata.v3.Metadata",
]);

function substitutionFormat(
  message: SubstitutionFormatString | undefined,
  scope: CompileScope,
  place: Place,
  problems: Problems,
): TextFormat {
  if (message === undefined) return compileTextFormat(defaultAccessLogFormat, "-", scope, place, problems);
  for (const [index, formatter] of message.formatters.entries()) {
    if (knownFormatters.has(formatter.typedConfig?.typeUrl ?? "")) continue;
    problems.error(place.field("formatters", index), `formatter '${formatter.name}' is not supported`);
  }
  const missing = message.omitEmptyValues ? "" : "-";
  const format = message.format;
  switch (format.case) {
    case "textFormat":
      return compileTextFormat(format.value, missing, scope, place.field("text_format"), problems);
    case "textFormatSource": {
      const at = place.field("text_format_source");
      if (format.value.specifier.case === "inlineString") {
        return compileTextFormat(format.value.specifier.value, missing, scope, at, problems);
      }
      problems.error(at, "only inline_string is supported");
      return () => "";
    }
    case "jsonFormat":
      return compileJsonFormat(format.value, message.omitEmptyValues, scope, place.field("json_format"), problems);
    case undefined:
      problems.error(place, "a format is required");
      return () => "";
  }
}

type LogCondition = (info: StreamInfo) => boolean;

function compileFilter(filter: AccessLogFilter, scope: CompileScope, place: Place, problems: Problems): LogCondition {
  const specifier = filter.filterSpecifier;
  switch (specifier.case) {
    case "statusCodeFilter": {
      const compare = comparison(specifier.value.comparison);
      return (info) => compare(info.responseCode);
    }
    case "durationFilter": {
      const compare = comparison(specifier.value.comparison);
      return (info) => compare(info.durationMs);
    }
    case "andFilter":
    case "orFilter": {
      const isAnd = specifier.case === "andFilter";
      const parts = specifier.value.filters.map((part, index) =>
        compileFilter(part, scope, place.field(isAnd ? "and_filter" : "or_filter", index), problems),
      );
      return (info) => (isAnd ? parts.every((part) => part(info)) : parts.some((part) => part(info)));
    }
    case "headerFilter": {
      const { header } = specifier.value;
      if (header === undefined) return () => true;
      const matches = compileRequestHeaderMatcher(header, place.field("header_filter").field("header"), problems);
      return (info) => info.request !== undefined && matches(info.request);
    }
    case "responseFlagFilter": {
      const flags = specifier.value.flags;
      const wanted = flags.reduce((bits, flag) => bits | (responseFlags[flag as ResponseFlag]?.bit ?? 0), 0);
      return (info) => (flags.length === 0 ? info.responseFlags !== 0 : (info.responseFlags & wanted) !== 0);
    }
    case "runtimeFilter": {
      const percent = specifier.value.percentSampled;
      const share = percent === undefined ? 0 : fractionOf(percent);
      return () => scope.random() < share;
    }
    case "notHealthCheckFilter":
      // Nothing marks a request as a health check here, so every request passes.
      return () => true;
    default:
      problems.error(place, `the access log filter '${specifier.case ?? "none"}' is not supported`);
      return () => false;
  }
}

function comparison(filter: ComparisonFilter | undefined): (value: number) => boolean {
  const bound = filter?.value?.defaultValue ?? 0;
  switch (filter?.op) {
    case Op.GE:
      return (value) => value >= bound;
    case Op.LE:
      return (value) => value <= bound;
    case Op.NE:
      return (value) => value !== bound;
    default:
      return (value) => value === bound;
  }
}
