// What Istio's metrics are to be like, in Istio's own message (stats.PluginConfig): for requests the configuration of
// the filter `istio.stats`, for connections a word in the metadata of their filter chain.
import type { JsonObject } from "@bufbuild/protobuf";
import { parseDuration } from "@tulle/config";
import type { ListenerMetrics, ListenerTelemetry } from "../scope/workload-telemetry.ts";

/** Istio's metrics as the message names them. */
const names: Readonly<Record<string, string>> = {
  REQUEST_COUNT: "requests_total",
  REQUEST_DURATION: "request_duration_milliseconds",
  REQUEST_SIZE: "request_bytes",
  RESPONSE_SIZE: "response_bytes",
  TCP_OPENED_CONNECTIONS: "tcp_connections_opened_total",
  TCP_CLOSED_CONNECTIONS: "tcp_connections_closed_total",
  TCP_SENT_BYTES: "tcp_sent_bytes_total",
  TCP_RECEIVED_BYTES: "tcp_received_bytes_total",
  GRPC_REQUEST_MESSAGES: "request_messages_total",
  GRPC_RESPONSE_MESSAGES: "response_messages_total",
};

/** Undefined where no metrics are kept. */
export function statsConfig(telemetry: ListenerTelemetry | undefined): JsonObject | undefined {
  const metrics: ListenerMetrics | undefined = telemetry === undefined ? { overrides: [] } : telemetry.metrics;
  if (metrics === undefined) return undefined;
  const { overrides, reportingInterval } = metrics;
  return {
    ...(overrides.length === 0 ? {} : { metrics: overrides.map(metricConfig) }),
    ...(reportingInterval === undefined ? {} : { tcp_reporting_duration: secondsText(reportingInterval) }),
  };
}

function metricConfig({ metric, disabled, tags }: ListenerMetrics["overrides"][number]): JsonObject {
  const inOrder = Object.entries(tags).sort(([a], [b]) => (a < b ? -1 : 1));
  const removed = inOrder.filter(([, value]) => value === null).map(([tag]) => tag);
  const dimensions = Object.fromEntries(inOrder.filter(([, value]) => value !== null));
  return {
    name: names[metric] ?? metric,
    ...(Object.keys(dimensions).length === 0 ? {} : { dimensions }),
    ...(removed.length === 0 ? {} : { tags_to_remove: removed }),
    ...(disabled === true ? { drop: true } : {}),
  };
}

/** A duration as JSON of protobuf has it. */
function secondsText(duration: string): string {
  return `${(parseDuration(duration) ?? 0) / 1000}s`;
}
