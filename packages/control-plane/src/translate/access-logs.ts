// Access logs of listeners: those that Telemetry and the mesh's configuration ask for, or Istio's line on standard
// output. Queries stand in none of them with the values that the mesh's redaction list names.
import { credentialHeaders, secretParameters } from "@tulle/telemetry";
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

interface Redaction {
  /** None: nothing is redacted. */
  readonly parameters: readonly string[];
  readonly isTulle: boolean;
}

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
  const redaction = { parameters, isTulle: telemetry?.isTulle === true };
  return logs.flatMap((log) => {
    const made = loggerOf(log, logged, redaction);
    if (made === undefined) return [];
    const filter = filterOf(log, logged);
    return [create(AccessLogSchema, { ...made, ...(filter === undefined ? {} : { filter }) })];
  });
}

type LogInit = MessageInitShape<typeof AccessLogSchema> & { $typeName?: never };

function loggerOf({ provider }: ListenerLog, logged: Logged, redaction: Redaction): LogInit | undefined {
  const { envoyFileAccessLog, envoyOtelAls, envoyHttpAls, envoyTcpAls, target } = provider;
  if (envoyFileAccessLog !== undefined) return fileLog(envoyFileAccessLog, redaction);
  if (target === undefined) return undefined;
  if (envoyOtelAls !== undefined) return otelLog(envoyOtelAls, target, redaction);
  if (envoyHttpAls !== undefined && logged === "requests") return requestLog(envoyHttpAls, target, redaction);
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
  redaction: Redaction,
): LogInit {
  const { text = defaultTextLog, labels } = logFormat;
  const written = labels === undefined ? text : Object.keys(labels).length === 0 ? defaultJsonLog : labels;
  const format = redacted(written, redaction);
  const value: MessageInitShape<typeof SubstitutionFormatStringSchema> = {
    format:
      typeof format === "string"
        ? { case: "textFormatSource", value: { specifier: { case: "inlineString", value: asLine(format) } } }
        : { case: "jsonFormat", value: format as JsonObject },
    omitEmptyValues,
    formatters: formattersOf(written, format, redaction),
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
  redaction: Redaction,
): LogInit {
  const { text = defaultTextLog, labels = {} } = logFormat;
  const written = { text, labels };
  const format = redacted(written, redaction) as typeof written;
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
      formatters: formattersOf(written, format, redaction),
    }),
  );
}

/** Entries hold whole paths, and the message has no formatters: Tulle's proxy reads the log's own name. */
function requestLog(
  provider: HttpAccessLogServiceProvider,
  target: ProviderTarget,
  { parameters }: Redaction,
): LogInit {
  const shown = (headers: readonly string[] = []): string[] =>
    headers.filter((header) => parameters.length === 0 || !credentialHeaders.includes(header.toLowerCase()));
  return logger(
    parameters.length === 0 ? "envoy.access_loggers.http_grpc" : redactedQuery(parameters),
    pack(HttpGrpcAccessLogConfigSchema, {
      commonConfig: serviceLog(provider, target, "http_envoy_accesslog"),
      additionalRequestHeadersToLog: shown(provider.additionalRequestHeadersToLog),
      additionalResponseHeadersToLog: shown(provider.additionalResponseHeadersToLog),
      additionalResponseTrailersToLog: shown(provider.additionalResponseTrailersToLog),
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

function redacted(format: Json, redaction: Redaction): Json {
  if (typeof format === "string") return withoutSecretQueries(format, redaction.parameters, redaction.isTulle);
  if (Array.isArray(format)) return format.map((each: Json) => redacted(each, redaction));
  if (typeof format !== "object" || format === null) return format;
  return Object.fromEntries(Object.entries(format).map(([name, each]) => [name, redacted(each, redaction)]));
}

const withoutQuery = "%REQ_WITHOUT_QUERY(";

function redactedQuery(parameters: readonly string[]): string {
  return `tulle.redacted_query:${parameters.join(",")}`;
}

/** Tulle's proxy reads the name of ours; to Envoy it is one like another. Who wants no query at all gets none. */
function formattersOf(written: Json, format: Json, { parameters, isTulle }: Redaction): Formatters {
  const isAsked = (text: Json): boolean => JSON.stringify(text).includes(withoutQuery);
  const formatter = (name: string) => ({ name, typedConfig: pack(ReqWithoutQuerySchema, {}) });
  const isWanted = isAsked(format) && (parameters.length === 0 || isAsked(written));
  const ofEnvoy = isWanted ? [formatter("envoy.formatter.req_without_query")] : [];
  const isRedacted = parameters.length > 0 && (isTulle || (isAsked(format) && !isWanted));
  return [...ofEnvoy, ...(isRedacted ? [formatter(redactedQuery(parameters))] : [])];
}
