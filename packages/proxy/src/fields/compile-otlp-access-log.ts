// Access logs as log records of OpenTelemetry, sent in batches over gRPC or HTTP
// (extensions.access_loggers.open_telemetry.v3.OpenTelemetryAccessLogConfig).
import { toBinary } from "@bufbuild/protobuf";
import type { OpenTelemetryAccessLogConfig } from "@tulle/xds/envoy/extensions/access_loggers/open_telemetry/v3/logs_service_pb";
import { OpenTelemetryAccessLogConfigSchema } from "@tulle/xds/envoy/extensions/access_loggers/open_telemetry/v3/logs_service_pb";
import type { AnyValue, KeyValueList } from "@tulle/xds/opentelemetry/proto/common/v1/common_pb";
import {
  type OtlpEntries,
  type OtlpValue,
  otlpEnvelope,
  otlpMethods,
  ProtobufWriter,
  writeLogRecord,
} from "@tulle/telemetry";
import type { AccessLog } from "../access-log/access-log.ts";
import type { FormatEnvironment } from "../format/operator.ts";
import { compileTextFormat } from "../format/substitution-format.ts";
import type { StreamInfo } from "../http/stream-info.ts";
import type { GrpcCollector, HttpCollector } from "../upstream/batch-exporter.ts";
import { accessLogLimits, accessLogStats } from "./access-log-limits.ts";
import { compileGrpcCollector, compileHttpCollector } from "./compile-collector.ts";
import { formattersScope } from "./compile-format-string.ts";
import type { CompileScope } from "./compile-scope.ts";
import type { Place, Problems } from "./problems.ts";

const writer = new ProtobufWriter();

/** Undefined after an error. */
export function compileOtlpAccessLog(
  message: OpenTelemetryAccessLogConfig,
  scope: CompileScope,
  place: Place,
  problems: Problems,
): AccessLog | undefined {
  const collector = compileCollector(message, scope, place, problems);
  const environment = formattersScope(message.formatters, scope, place, problems);
  const template = { environment, problems };
  const body = message.body && compileValue(message.body, template, place.field("body"));
  const attributes = compileEntries(message.attributes, template, place.field("attributes"));
  const origin = { resource: resourceOf(message, scope, place, problems) };
  if (collector === undefined || problems.hasErrors) return undefined;
  const key = `access log ${Buffer.from(toBinary(OpenTelemetryAccessLogConfigSchema, message)).toString("latin1")}`;
  const exporter = scope.exporters.get(key, () => ({
    items: "access logs",
    collector,
    limits: accessLogLimits(message, message.commonConfig),
    envelope: otlpEnvelope(origin),
    stats: accessLogStats(`open_telemetry_access_log.${message.statPrefix}`, scope.metrics),
  }));
  return {
    log: (info) => {
      writer.clear();
      writeLogRecord(writer, {
        timeMs: info.startTimeMs,
        body: body?.(info),
        attributes: attributes(info),
        // Zipkin's may be half as long.
        traceId: info.span?.traceId.padStart(32, "0"),
        spanId: info.span?.spanId,
      });
      exporter.add(writer.written);
    },
  };
}

function compileCollector(
  { grpcService, httpService, commonConfig }: OpenTelemetryAccessLogConfig,
  scope: CompileScope,
  place: Place,
  problems: Problems,
): GrpcCollector | HttpCollector | undefined {
  if (httpService !== undefined)
    return compileHttpCollector(httpService, "application/x-protobuf", scope, place.field("http_service"), problems);
  const service = grpcService ?? commonConfig?.grpcService;
  if (service === undefined) {
    problems.error(place, "a grpc_service or an http_service is required");
    return undefined;
  }
  const at = grpcService === undefined ? place.field("common_config") : place;
  return compileGrpcCollector(service, otlpMethods.logs, scope, at.field("grpc_service"), problems);
}

/** The labels that Envoy gives by itself, then the configured ones, which are no formats. */
function resourceOf(
  message: OpenTelemetryAccessLogConfig,
  { node }: CompileScope,
  place: Place,
  problems: Problems,
): readonly (readonly [string, string])[] {
  const logName = message.logName === "" ? (message.commonConfig?.logName ?? "") : message.logName;
  const builtin: readonly (readonly [string, string])[] = [
    ["log_name", logName],
    ["zone_name", node.zone],
    ["cluster_name", node.cluster],
    ["node_name", node.id],
  ];
  const own = (message.resourceAttributes?.values ?? []).map(({ key, value }, index): readonly [string, string] => {
    if (value?.value.case === "stringValue") return [key, value.value.value];
    problems.error(place.field("resource_attributes").field("values", index), "only a string_value is supported");
    return [key, ""];
  });
  return message.disableBuiltinLabels ? own : [...builtin, ...own];
}

interface Template {
  readonly environment: FormatEnvironment;
  readonly problems: Problems;
}

function compileEntries(
  list: KeyValueList | undefined,
  template: Template,
  place: Place,
): (info: StreamInfo) => OtlpEntries {
  const parts = (list?.values ?? []).map(({ key, value }, index) => {
    const make = value && compileValue(value, template, place.field("values", index));
    return { key, make: make ?? (() => "") };
  });
  return (info) => parts.map(({ key, make }): readonly [string, OtlpValue] => [key, make(info)]);
}

function compileValue({ value }: AnyValue, template: Template, place: Place): (info: StreamInfo) => OtlpValue {
  switch (value.case) {
    case "stringValue": {
      const format = compileTextFormat(value.value, "-", template.environment, place, template.problems);
      return (info) => format(info, info.request, info.response);
    }
    case "arrayValue": {
      const elements = value.value.values.map((element) => compileValue(element, template, place));
      return (info) => elements.map((element) => element(info));
    }
    case "kvlistValue": {
      const entries = compileEntries(value.value, template, place);
      return (info) => ({ keyValues: entries(info) });
    }
    default:
      template.problems.error(
        place,
        "Only string values, nested key value lists and array values are supported in OpenTelemetry access log format.",
      );
      return () => "";
  }
}
