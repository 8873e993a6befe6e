// Access logs of listeners: those that Telemetry and the mesh's configuration ask for, or Istio's line on standard
// output. Queries stand in none of them with the values that the mesh's redaction list names.
import { secretParameters } from "@tulle/telemetry";
import { create, type JsonObject, type MessageInitShape } from "@bufbuild/protobuf";
import {
  type FileAccessLogProvider,
  type HttpAccessLogServiceProvider,
  type Json,
  type OtelAccessLogProvider,
  withoutSecretQueries,
} from "@tulle/config";
import {
  type AccessLog,
  type AccessLogFilter,
  AccessLogFilterSchema,
  AccessLogSchema,
} from "@tulle/xds/envoy/config/accesslog/v3/accesslog_pb";
import { ApiVersion } from "@tulle/xds/envoy/config/core/v3/config_source_pb";
import type { SubstitutionFormatStringSchema } from "@tulle/xds/envoy/config/core/v3/substitution_format_string_pb";
import { ExpressionFilterSchema } from "@tulle/xds/envoy/extensions/access_loggers/filters/cel/v3/cel_pb";
import { FileAccessLogSchema } from "@tulle/xds/envoy/extensions/access_loggers/file/v3/file_pb";
import {
  type CommonGrpcAccessLogConfigSchema,
  HttpGrpcAccessLogConfigSchema,
  TcpGrpcAccessLogConfigSchema,
} from "@tulle/xds/envoy/extensions/access_loggers/grpc/v3/als_pb";
import { OpenTelemetryAccessLogConfigSchema } from "@tulle/xds/envoy/extensions/access_loggers/open_telemetry/v3/logs_service_pb";
import {
  StderrAccessLogSchema,
  StdoutAccessLogSchema,
} from "@tulle/xds/envoy/extensions/access_loggers/stream/v3/stream_pb";
import { ReqWithoutQuerySchema } from "@tulle/xds/envoy/extensions/formatter/req_without_query/v3/req_without_query_pb";
import type { ListenerLog, ListenerTelemetry } from "../scope/workload-telemetry.ts";
import type { ProviderTarget } from "../snapshot/telemetry.ts";
import { defaultJsonLog, defaultTextLog, revisionOperator } from "./log-formats.ts";
import { pack } from "./messages.ts";
import { grpcServiceOf } from "./provider-services.ts";

/** What is logged: requests, connections, or connections that no filter chain takes. */
type Logged = "requests" | "connections" | "turned away";

interface LoggedBy {
  readonly telemetry?: ListenerTelemetry | undefined;
  readonly redactedParameters?: readonly string[] | undefined;
}

type Formatters = NonNullable<MessageInitShape<typeof SubstitutionFormatStringSchema>["formatters"]>;

const defaultLogs: readonly ListenerLog[] = [{ provider: { name: "envoy", envoyFileAccessLog: {} } }];

export function accessLogs(logged: Logged, { telemetry, redactedParameters }: LoggedBy): AccessLog[] {
  const { accessLogs: logs } = telemetry ?? { accessLogs: defaultLogs };
  // Connections have no query.
  const parameters = logged === "requests" ? (redactedParameters ?? secretParameters) : [];
  return logs.flatMap((log) => {
    const made = loggerOf(log, logged, parameters);
    if (made === undefined) return [];
    const filter = filterOf(log, logged);
    return [create(AccessLogSchema, { ...made, ...(filter === undefined ? {} : { filter }) })];
  });
}

type LogInit = MessageInitShape<typeof AccessLogSchema> & { $typeName?: never };

function loggerOf({ provider }: ListenerLog, logged: Logged, parameters: readonly string[]): LogInit | undefined {
  const { envoyFileAccessLog, envoyOtelAls, envoyHttpAls, envoyTcpAls, target } = provider;
  if (envoyFileAccessLog !== undefined) return fileLog(envoyFileAccessLog, parameters);
  if (target === undefined) return undefined;
  if (envoyOtelAls !== undefined) return otelLog(envoyOtelAls, target, parameters);
  if (envoyHttpAls !== undefined && logged === "requests") return requestLog(envoyHttpAls, target, parameters);
  if (envoyTcpAls !== undefined && logged !== "requests") {
    const commonConfig = serviceLog(envoyTcpAls, target, "tcp_envoy_accesslog");
    return logger("envoy.access_loggers.tcp_grpc", pack(TcpGrpcAccessLogConfigSchema, { commonConfig }));
  }
  return undefined;
}

function logger(name: string, value: ReturnType<typeof pack>): LogInit {
  return { name, configType: { case: "typedConfig", value } };
}

function filterOf({ expression }: ListenerLog, logged: Logged): AccessLogFilter | undefined {
  const filters: AccessLogFilter[] = [];
  if (logged === "turned away") {
    // Plain text at a STRICT port, for one: no request of such a connection is ever logged (as Istio).
    filters.push(
      create(AccessLogFilterSchema, { filterSpecifier: { case: "responseFlagFilter", value: { flags: ["NR"] } } }),
    );
  }
  if (expression !== undefined) {
    const value = {
      name: "envoy.access_loggers.extension_filters.cel",
      configType: { case: "typedConfig", value: pack(ExpressionFilterSchema, { expression }) },
    } as const;
    filters.push(create(AccessLogFilterSchema, { filterSpecifier: { case: "extensionFilter", value } }));
  }
  return filters.length < 2
    ? filters[0]
    : create(AccessLogFilterSchema, { filterSpecifier: { case: "andFilter", value: { filters } } });
}

/** Istio opens the file /dev/stdout, which Linux refuses where standard output is a socket, as under Node's `spawn`. */
function fileLog(
  { path = "/dev/stdout", logFormat = {}, omitEmptyValues = false }: FileAccessLogProvider,
  parameters: readonly string[],
): LogInit {
  const { text = defaultTextLog, labels } = logFormat;
  const written = labels === undefined ? text : Object.keys(labels).length === 0 ? defaultJsonLog : labels;
  const format = redacted(written, parameters);
  const value: MessageInitShape<typeof SubstitutionFormatStringSchema> = {
    format:
      typeof format === "string"
        ? { case: "textFormatSource", value: { specifier: { case: "inlineString", value: asLine(format) } } }
        : { case: "jsonFormat", value: format as JsonObject },
    omitEmptyValues,
    formatters: formattersOf(written, format, parameters),
  };
  const accessLogFormat = { case: "logFormat", value } as const;
  switch (path) {
    case "":
    case "/dev/stdout":
      return logger("envoy.access_loggers.stdout", pack(StdoutAccessLogSchema, { accessLogFormat }));
    case "/dev/stderr":
      return logger("envoy.access_loggers.stderr", pack(StderrAccessLogSchema, { accessLogFormat }));
    default:
      return logger("envoy.access_loggers.file", pack(FileAccessLogSchema, { path, accessLogFormat }));
  }
}

function asLine(text: string): string {
  return text.endsWith("\n") ? text : `${text}\n`;
}

/** Istio: openTelemetryLog. */
function otelLog(
  { logFormat = {}, ...provider }: OtelAccessLogProvider,
  target: ProviderTarget,
  parameters: readonly string[],
): LogInit {
  const { text = defaultTextLog, labels = {} } = logFormat;
  const written = { text, labels };
  const format = redacted(written, parameters) as typeof written;
  const stringValue = (value: string) => ({ value: { case: "stringValue", value } }) as const;
  return logger(
    "envoy.access_loggers.open_telemetry",
    pack(OpenTelemetryAccessLogConfigSchema, {
      commonConfig: serviceLog(provider, target, "otel_envoy_accesslog"),
      disableBuiltinLabels: true,
      body: stringValue(format.text),
      attributes: {
        values: Object.entries({ "tulle.config.revision": revisionOperator, ...format.labels })
          .sort(([a], [b]) => (a < b ? -1 : 1))
          .map(([key, value]) => ({ key, value: stringValue(value) })),
      },
      formatters: formattersOf(written, format, parameters),
    }),
  );
}

/** Entries hold whole paths, and the message has no formatters: Tulle's proxy reads the log's own name. */
function requestLog(
  provider: HttpAccessLogServiceProvider,
  target: ProviderTarget,
  parameters: readonly string[],
): LogInit {
  return logger(
    parameters.length === 0 ? "envoy.access_loggers.http_grpc" : redactedQuery(parameters),
    pack(HttpGrpcAccessLogConfigSchema, {
      commonConfig: serviceLog(provider, target, "http_envoy_accesslog"),
      additionalRequestHeadersToLog: [...(provider.additionalRequestHeadersToLog ?? [])],
      additionalResponseHeadersToLog: [...(provider.additionalResponseHeadersToLog ?? [])],
      additionalResponseTrailersToLog: [...(provider.additionalResponseTrailersToLog ?? [])],
    }),
  );
}

function serviceLog(
  { logName, filterStateObjectsToLog = [] }: Pick<OtelAccessLogProvider, "logName" | "filterStateObjectsToLog">,
  target: ProviderTarget,
  defaultName: string,
): MessageInitShape<typeof CommonGrpcAccessLogConfigSchema> {
  return {
    logName: logName || defaultName,
    grpcService: grpcServiceOf(target),
    transportApiVersion: ApiVersion.V3,
    filterStateObjectsToLog: [...filterStateObjectsToLog],
  };
}

function redacted(format: Json, parameters: readonly string[]): Json {
  if (typeof format === "string") return withoutSecretQueries(format, parameters);
  if (Array.isArray(format)) return format.map((each: Json) => redacted(each, parameters));
  if (typeof format !== "object" || format === null) return format;
  return Object.fromEntries(Object.entries(format).map(([name, each]) => [name, redacted(each, parameters)]));
}

const withoutQuery = "%REQ_WITHOUT_QUERY(";

function redactedQuery(parameters: readonly string[]): string {
  return `tulle.redacted_query:${parameters.join(",")}`;
}

/** Tulle's proxy reads the name of ours; to Envoy it is one like another. Who wants no query at all gets none. */
function formattersOf(written: Json, format: Json, parameters: readonly string[]): Formatters {
  if (!JSON.stringify(format).includes(withoutQuery)) return [];
  const isWanted = parameters.length === 0 || JSON.stringify(written).includes(withoutQuery);
  const name = isWanted ? "envoy.formatter.req_without_query" : redactedQuery(parameters);
  return [{ name, typedConfig: pack(ReqWithoutQuerySchema, {}) }];
}
