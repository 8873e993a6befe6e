// Access logs of a connection manager, a TCP proxy or a listener: files and streams as text or JSON, OpenTelemetry and
// access log services, with Envoy's filters (config.accesslog.v3.AccessLog).
import type { JsonObject } from "@bufbuild/protobuf";
import type { AccessLog as AccessLogMessage } from "@tulle/xds/envoy/config/accesslog/v3/accesslog_pb";
import type { SubstitutionFormatString } from "@tulle/xds/envoy/config/core/v3/substitution_format_string_pb";
import { FileAccessLogSchema } from "@tulle/xds/envoy/extensions/access_loggers/file/v3/file_pb";
import {
  HttpGrpcAccessLogConfigSchema,
  TcpGrpcAccessLogConfigSchema,
} from "@tulle/xds/envoy/extensions/access_loggers/grpc/v3/als_pb";
import { OpenTelemetryAccessLogConfigSchema } from "@tulle/xds/envoy/extensions/access_loggers/open_telemetry/v3/logs_service_pb";
import {
  StderrAccessLogSchema,
  StdoutAccessLogSchema,
} from "@tulle/xds/envoy/extensions/access_loggers/stream/v3/stream_pb";
import { type TextFormat, compileJsonFormat, compileTextFormat } from "../format/substitution-format.ts";
import type { AccessLog } from "../access-log/access-log.ts";
import type { CompileScope, LogFile } from "./compile-scope.ts";
import { compileFormatString } from "./compile-format-string.ts";
import { type LogCondition, compileLogCondition } from "./compile-log-condition.ts";
import type { Place, Problems } from "./problems.ts";
import { decodeTypedConfig, typeUrlOf, unwrapTypedConfig } from "./typed-config.ts";
import { compileHttpGrpcAccessLog, compileTcpGrpcAccessLog } from "./compile-grpc-access-log.ts";
import { compileOtlpAccessLog } from "./compile-otlp-access-log.ts";
import {
  fileAccessLogMessage,
  httpGrpcAccessLogMessage,
  otlpAccessLogMessage,
  stderrAccessLogMessage,
  stdoutAccessLogMessage,
  tcpGrpcAccessLogMessage,
} from "./access-log-fields.ts";

/** Envoy's default (docs: configuration/observability/access_log/usage, "Default Format String"). */
const defaultAccessLogFormat =
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
  const accepts = message.filter && compileLogCondition(message.filter, scope, place.field("filter"), problems);
  const target = compileTarget(message, scope, place, problems);
  if (target === undefined || problems.hasErrors) return undefined;
  if ("log" in target) return accepts === undefined ? target : filtered(target, accepts);
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
      if (accepts !== undefined && !accepts(info, info.response)) return;
      file.write(format(info, info.request, info.response));
    },
  };
}

function filtered(target: AccessLog, accepts: LogCondition): AccessLog {
  return {
    log: (info) => {
      if (accepts(info, info.response)) target.log(info);
    },
  };
}

function compileTarget(
  message: AccessLogMessage,
  scope: CompileScope,
  place: Place,
  problems: Problems,
): LogTarget | AccessLog | undefined {
  const config = message.configType.case === "typedConfig" ? unwrapTypedConfig(message.configType.value) : undefined;
  const at = place.field("typed_config");
  switch (config?.typeUrl) {
    case typeUrlOf(FileAccessLogSchema): {
      const file = decodeTypedConfig(fileAccessLogMessage, config, at, problems);
      if (file === undefined) return undefined;
      if (file.path === "") problems.error(at.field("path"), "value length must be at least 1 characters");
      return { path: file.path, format: fileFormat(file.accessLogFormat, scope, at, problems) };
    }
    case typeUrlOf(StdoutAccessLogSchema):
    case typeUrlOf(StderrAccessLogSchema): {
      const isStdout = config.typeUrl === typeUrlOf(StdoutAccessLogSchema);
      const stream = isStdout
        ? decodeTypedConfig(stdoutAccessLogMessage, config, at, problems)
        : decodeTypedConfig(stderrAccessLogMessage, config, at, problems);
      const format = stream?.accessLogFormat.case === "logFormat" ? stream.accessLogFormat.value : undefined;
      return {
        path: isStdout ? "/dev/stdout" : "/dev/stderr",
        format: logFormat(format, scope, at.field("log_format"), problems),
      };
    }
    case typeUrlOf(OpenTelemetryAccessLogConfigSchema): {
      const otlp = decodeTypedConfig(otlpAccessLogMessage, config, at, problems);
      return otlp && compileOtlpAccessLog(otlp, scope, at, problems);
    }
    case typeUrlOf(HttpGrpcAccessLogConfigSchema): {
      const service = decodeTypedConfig(httpGrpcAccessLogMessage, config, at, problems);
      return service && compileHttpGrpcAccessLog(service, message.name, scope, at, problems);
    }
    case typeUrlOf(TcpGrpcAccessLogConfigSchema): {
      const service = decodeTypedConfig(tcpGrpcAccessLogMessage, config, at, problems);
      return service && compileTcpGrpcAccessLog(service, scope, at, problems);
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
      return logFormat(format.value, scope, place.field("log_format"), problems);
    case undefined:
      return compileTextFormat(defaultAccessLogFormat, "-", scope, place, problems);
  }
}

function logFormat(
  message: SubstitutionFormatString | undefined,
  scope: CompileScope,
  place: Place,
  problems: Problems,
): TextFormat {
  return message === undefined
    ? compileTextFormat(defaultAccessLogFormat, "-", scope, place, problems)
    : compileFormatString(message, scope, place, problems);
}
