// How the hosts of a cluster are checked (config.core.v3.HealthCheck), with Envoy's defaults and in its words where it
// refuses.
import type { Cluster as ClusterMessage } from "@tulle/xds/envoy/config/cluster/v3/cluster_pb";
import { type HeaderValueOption, RequestMethod } from "@tulle/xds/envoy/config/core/v3/base_pb";
import type {
  HealthCheck,
  HealthCheck_HttpHealthCheck as HttpHealthCheck,
  HealthCheck_Payload as Payload,
} from "@tulle/xds/envoy/config/core/v3/health_check_pb";
import { CodecClientType } from "@tulle/xds/envoy/type/v3/http_pb";
import type { Int64Range } from "@tulle/xds/envoy/type/v3/range_pb";
import type { UpstreamProtocolChoice } from "../cluster/cluster.ts";
import type {
  CheckHeaderChange,
  HealthCheckSettings,
  HttpCheck,
  StatusRange,
} from "../cluster/health-check/health-check-settings.ts";
import { checkHeaderText } from "../fields/check-header-text.ts";
import { compileHeaderChanges } from "../fields/compile-header-changes.ts";
import { durationMs } from "../fields/duration.ts";
import { compileStringMatcher } from "../fields/matchers/string-matcher.ts";
import type { Place, Problems } from "../fields/problems.ts";
import type { FormatEnvironment } from "../format/operator.ts";
import { StreamInfo } from "../http/stream-info.ts";

const defaultNoTrafficMs = 60_000;
/** HttpHealthCheck.response_buffer_size, where it is not set. */
const defaultResponseBufferBytes = 1024;
/** In the place of Envoy's "no limit", which 0 asks for. */
const maxResponseBufferBytes = 1024 * 1024;

interface Build {
  readonly environment: FormatEnvironment;
  readonly protocol: UpstreamProtocolChoice;
  readonly problems: Problems;
}

/** Undefined where nothing is checked. */
export function compileHealthCheck(
  { healthChecks }: ClusterMessage,
  build: Build,
  clusterPlace: Place,
): HealthCheckSettings | undefined {
  const message = healthChecks[0];
  if (message === undefined) return undefined;
  const { problems } = build;
  if (healthChecks.length > 1)
    problems.error(clusterPlace.field("health_checks"), "Multiple health checks not supported");
  const place = clusterPlace.field("health_checks", 0);
  checkTimes(message, place, problems);
  const check = compileCheck(message, build, place);
  if (check === undefined) return undefined;
  const healthyMs = durationMs(message.interval, 0);
  const unhealthyMs = durationMs(message.unhealthyInterval, healthyMs);
  const noTrafficMs = durationMs(message.noTrafficInterval, defaultNoTrafficMs);
  return {
    timeoutMs: durationMs(message.timeout, 0),
    initialJitterMs: durationMs(message.initialJitter, 0),
    intervalJitterMs: durationMs(message.intervalJitter, 0),
    intervalJitterPercent: message.intervalJitterPercent,
    intervals: {
      healthyMs,
      healthyEdgeMs: durationMs(message.healthyEdgeInterval, healthyMs),
      unhealthyMs,
      unhealthyEdgeMs: durationMs(message.unhealthyEdgeInterval, unhealthyMs),
      noTrafficMs,
      noTrafficHealthyMs: durationMs(message.noTrafficHealthyInterval, noTrafficMs),
    },
    unhealthyThreshold: message.unhealthyThreshold ?? 1,
    healthyThreshold: message.healthyThreshold ?? 1,
    reusesConnection: message.reuseConnection ?? true,
    check,
    alpnProtocols: message.tlsOptions?.alpnProtocols,
    transportCriteria: message.transportSocketMatchCriteria,
    alwaysLogsFailures: message.alwaysLogHealthCheckFailures,
    alwaysLogsSuccess: message.alwaysLogHealthCheckSuccess,
  };
}

/** The names of fields, and whether each must be there. */
const times = [
  ["timeout", "timeout", true],
  ["interval", "interval", true],
  ["noTrafficInterval", "no_traffic_interval", false],
  ["noTrafficHealthyInterval", "no_traffic_healthy_interval", false],
  ["unhealthyInterval", "unhealthy_interval", false],
  ["unhealthyEdgeInterval", "unhealthy_edge_interval", false],
  ["healthyEdgeInterval", "healthy_edge_interval", false],
] as const;

function checkTimes(message: HealthCheck, place: Place, problems: Problems): void {
  for (const [field, name, isRequired] of times) {
    const value = message[field];
    if (value === undefined && isRequired) problems.error(place.field(name), "value is required");
    if (value !== undefined && durationMs(value, 0) <= 0)
      problems.error(place.field(name), "value must be greater than 0s");
  }
  if (message.unhealthyThreshold === undefined) problems.error(place.field("unhealthy_threshold"), "value is required");
  if (message.healthyThreshold === undefined) problems.error(place.field("healthy_threshold"), "value is required");
}

function compileCheck(message: HealthCheck, build: Build, place: Place): HealthCheckSettings["check"] | undefined {
  const { problems, protocol } = build;
  const checker = message.healthChecker;
  switch (checker.case) {
    case "httpHealthCheck":
      return compileHttpCheck(checker.value, build, place.field("http_health_check"));
    case "tcpHealthCheck": {
      const at = place.field("tcp_health_check");
      return {
        type: "TCP",
        send: checker.value.send && payloadBytes(checker.value.send, at.field("send"), problems),
        receive: payloads(checker.value.receive, at, problems),
      };
    }
    case "grpcHealthCheck": {
      const at = place.field("grpc_health_check");
      if (protocol === "HTTP/1.1") problems.error(at, "cluster must support HTTP/2 for gRPC healthchecking");
      const { serviceName, authority, initialMetadata } = checker.value;
      return {
        type: "GRPC",
        serviceName,
        authority: checkHeaderText(authority, at.field("authority"), problems),
        changeHeaders: headerChange(initialMetadata, [], build, at.field("initial_metadata")),
      };
    }
    case "customHealthCheck":
      problems.error(place.field("custom_health_check"), "is not supported");
      return undefined;
    default:
      problems.error(place.field("health_checker"), "value is required");
      return undefined;
  }
}

const methodsWithoutBody: ReadonlySet<string> = new Set(["GET", "HEAD", "DELETE", "TRACE"]);

function compileHttpCheck(message: HttpHealthCheck, build: Build, place: Place): HttpCheck {
  const { problems } = build;
  if (message.path === "") problems.error(place.field("path"), "value length must be at least 1 characters");
  const method = methodName(message.method);
  if (method === "CONNECT") problems.error(place.field("method"), "value must not be in list [6]");
  const body = message.send && payloadBytes(message.send, place.field("send"), problems);
  if (body !== undefined && methodsWithoutBody.has(method))
    problems.error(place.field("send"), `HTTP health check cannot specify a request payload with method '${method}'`);
  const isHttp2 = message.codecClientType === CodecClientType.HTTP2;
  if (message.codecClientType === CodecClientType.HTTP3)
    problems.error(place.field("codec_client_type"), "HTTP/3 is not supported");
  const expected = statusRanges(message.expectedStatuses, "expected", place, problems);
  const responseBufferBytes = Number(message.responseBufferSize ?? defaultResponseBufferBytes);
  const receive = payloads(message.receive, place, problems);
  const receiveBytes = receive.reduce((sum, part) => sum + part.length, 0);
  if (responseBufferBytes !== 0 && receiveBytes > responseBufferBytes)
    problems.error(
      place.field("receive"),
      `The expected response length '${receiveBytes}' is over than http health response buffer size '${responseBufferBytes}'`,
    );
  return {
    type: "HTTP",
    protocol: isHttp2 ? "HTTP/2" : "HTTP/1.1",
    host: checkHeaderText(message.host, place.field("host"), problems),
    path: checkHeaderText(message.path, place.field("path"), problems),
    method,
    body,
    expectedStatuses: expected.length === 0 ? [{ start: 200, end: 201 }] : expected,
    retriableStatuses: statusRanges(message.retriableStatuses, "retriable", place, problems),
    receive,
    responseBufferBytes: responseBufferBytes === 0 ? maxResponseBufferBytes : responseBufferBytes,
    changeHeaders: headerChange(message.requestHeadersToAdd, message.requestHeadersToRemove, build, place),
    serviceName:
      message.serviceNameMatcher &&
      compileStringMatcher(message.serviceNameMatcher, place.field("service_name_matcher"), problems),
  };
}

function methodName(method: RequestMethod): string {
  if (method === RequestMethod.METHOD_UNSPECIFIED) return "GET";
  return Object.entries(RequestMethod).find(([, number]) => number === method)?.[0] ?? "GET";
}

function statusRanges(
  ranges: readonly Int64Range[],
  kind: "expected" | "retriable",
  place: Place,
  problems: Problems,
): readonly StatusRange[] {
  return ranges.map((range, index) => {
    const start = Number(range.start);
    const end = Number(range.end);
    const at = place.field(`${kind}_statuses`, index);
    const rule = `Invalid http ${kind} status range: expecting`;
    if (start >= end) problems.error(at, `${rule} start < end, but found start=${start} and end=${end}`);
    else if (start < 100) problems.error(at, `${rule} start >= 100, but found start=${start}`);
    else if (end > 600) problems.error(at, `${rule} end <= 600, but found end=${end}`);
    return { start, end };
  });
}

function payloads(list: readonly Payload[], place: Place, problems: Problems): readonly Buffer[] {
  return list.map((payload, index) => payloadBytes(payload, place.field("receive", index), problems));
}

/** Text is hexadecimal. */
function payloadBytes({ payload }: Payload, place: Place, problems: Problems): Buffer {
  if (payload.case === "binary") return Buffer.from(payload.value);
  const text = payload.value ?? "";
  if (text === "") problems.error(place, "value is required");
  else if (!/^([0-9a-f]{2})+$/i.test(text)) problems.error(place.field("text"), `invalid hex string '${text}'`);
  return Buffer.from(text, "hex");
}

/** Formats see the host, and no request of a client. */
function headerChange(
  add: readonly HeaderValueOption[],
  remove: readonly string[],
  { environment, problems }: Build,
  place: Place,
): CheckHeaderChange | undefined {
  const change = compileHeaderChanges({ add, remove }, "request_headers", environment, place, problems);
  if (change === undefined) return undefined;
  return (headers, host, head) => {
    const info = new StreamInfo(Date.now(), performance.now(), "", "", "");
    info.request = head;
    info.upstreamHost = host;
    change(headers, info, head, undefined);
  };
}
