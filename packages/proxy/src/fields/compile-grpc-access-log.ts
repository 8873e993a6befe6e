// Access logs that go to an access log service (extensions.access_loggers.grpc.v3: HttpGrpcAccessLogConfig,
// TcpGrpcAccessLogConfig; service.accesslog.v3.AccessLogService): one long call a log, messages in batches.
import { type DescMessage, type MessageShape, create, toBinary } from "@bufbuild/protobuf";
import { ProtobufWriter, varintBytes } from "@tulle/telemetry";
import { NodeSchema } from "@tulle/xds/envoy/config/core/v3/base_pb";
import {
  type HttpGrpcAccessLogConfig,
  HttpGrpcAccessLogConfigSchema,
  type TcpGrpcAccessLogConfig,
  TcpGrpcAccessLogConfigSchema,
} from "@tulle/xds/envoy/extensions/access_loggers/grpc/v3/als_pb";
import { StreamAccessLogsMessageSchema } from "@tulle/xds/envoy/service/accesslog/v3/als_pb";
import type { AccessLog } from "../access-log/access-log.ts";
import { writeConnectionEntry, writeRequestEntry } from "../access-log/log-entries.ts";
import type { StreamInfo } from "../http/stream-info.ts";
import type { BatchExporter } from "../upstream/batch-exporter.ts";
import { accessLogLimits, accessLogStats } from "./access-log-limits.ts";
import { redactedIn } from "./compile-format-string.ts";
import { compileGrpcService } from "./compile-grpc-service.ts";
import type { CompileScope } from "./compile-scope.ts";
import type { Place, Problems } from "./problems.ts";

const method = "/envoy.service.accesslog.v3.AccessLogService/StreamAccessLogs";

/** Fields of StreamAccessLogsMessage. */
const httpLogsField = 2;
const tcpLogsField = 3;

const writer = new ProtobufWriter();

/** Undefined after an error. `logName` is how the log is called where it stands. */
export function compileHttpGrpcAccessLog(
  message: HttpGrpcAccessLogConfig,
  logName: string,
  scope: CompileScope,
  place: Place,
  problems: Problems,
): AccessLog | undefined {
  const lowerCase = (names: readonly string[]): readonly string[] => names.map((name) => name.toLowerCase());
  const parts = {
    requestHeaders: lowerCase(message.additionalRequestHeadersToLog),
    responseHeaders: lowerCase(message.additionalResponseHeadersToLog),
    responseTrailers: lowerCase(message.additionalResponseTrailersToLog),
    filterStateObjects: message.commonConfig?.filterStateObjectsToLog ?? [],
    redactedParameters: redactedIn([logName]),
  };
  const exporter = serviceExporter(HttpGrpcAccessLogConfigSchema, message, httpLogsField, scope, place, problems);
  return exporter && writing(exporter, (info) => writeRequestEntry(writer, info, parts));
}

/** Undefined after an error. */
export function compileTcpGrpcAccessLog(
  message: TcpGrpcAccessLogConfig,
  scope: CompileScope,
  place: Place,
  problems: Problems,
): AccessLog | undefined {
  const exporter = serviceExporter(TcpGrpcAccessLogConfigSchema, message, tcpLogsField, scope, place, problems);
  return exporter && writing(exporter, (info) => writeConnectionEntry(writer, info));
}

function writing(exporter: BatchExporter, write: (info: StreamInfo) => void): AccessLog {
  return {
    log: (info) => {
      writer.clear();
      write(info);
      exporter.add(writer.written);
    },
  };
}

function serviceExporter<D extends DescMessage>(
  schema: D,
  message: MessageShape<D> & Pick<HttpGrpcAccessLogConfig, "commonConfig">,
  logsField: number,
  scope: CompileScope,
  place: Place,
  problems: Problems,
): BatchExporter | undefined {
  const at = place.field("common_config");
  const { commonConfig: common } = message;
  if (common === undefined) problems.error(at, "value is required");
  else if (common.logName === "") problems.error(at.field("log_name"), "value length must be at least 1 characters");
  const service = common?.grpcService;
  if (common === undefined || service === undefined) {
    if (common !== undefined) problems.error(at.field("grpc_service"), "value is required");
    return undefined;
  }
  const target = compileGrpcService(service, at.field("grpc_service"), problems);
  if (target === undefined || problems.hasErrors) return undefined;
  const key = `access log service ${schema.typeName} ${Buffer.from(toBinary(schema, message)).toString("latin1")}`;
  return scope.exporters.get(key, () => ({
    items: "access logs",
    collector: {
      protocol: "grpc_stream",
      cluster: scope.clusterSlot(target.clusterName),
      target,
      path: method,
      opening: openingOf(common.logName, scope),
    },
    limits: accessLogLimits(common),
    envelope: (entries) => logsOf(logsField, entries),
    stats: accessLogStats("grpc_access_log.", scope.metrics),
  }));
}

/** The identifier of a call's first message. */
function openingOf(logName: string, { bootstrapNode }: CompileScope): Uint8Array {
  const node = bootstrapNode ?? create(NodeSchema);
  return toBinary(
    StreamAccessLogsMessageSchema,
    create(StreamAccessLogsMessageSchema, { identifier: { node, logName } }),
  );
}

/** Entries, each with tag and length, within their list. */
function logsOf(field: number, entries: Buffer): Buffer {
  const bytes = Buffer.allocUnsafe(1 + varintBytes(entries.length) + entries.length);
  bytes[0] = field * 8 + 2;
  let at = 1;
  let rest = entries.length;
  for (; rest > 0x7f; rest = Math.floor(rest / 0x80)) bytes[at++] = (rest % 0x80) | 0x80;
  bytes[at] = rest;
  bytes.set(entries, at + 1);
  return bytes;
}
