// `Http2ProtocolOptions` of a connection manager or a cluster.
import type { Http2ProtocolOptions, KeepaliveSettings } from "@tulle/xds/envoy/config/core/v3/protocol_pb";
import type { Http2KeepAlive, Http2Options } from "../codec/http2/http2-options.ts";
import { durationMs } from "./duration.ts";
import type { Place, Problems } from "./problems.ts";

export function compileHttp2Options(
  message: Http2ProtocolOptions | undefined,
  fallback: Http2Options,
  place: Place,
  problems: Problems,
): Http2Options {
  if (message === undefined) return fallback;
  const within = (field: string, value: number | undefined, least: number, most: number): void => {
    if (value === undefined || (value >= least && value <= most)) return;
    problems.error(place.field(field), `value must be inside range [${least}, ${most}]`);
  };
  within("max_concurrent_streams", message.maxConcurrentStreams, 1, 0x7fff_ffff);
  within("initial_stream_window_size", message.initialStreamWindowSize, 65_535, 0x7fff_ffff);
  within("initial_connection_window_size", message.initialConnectionWindowSize, 65_535, 0x7fff_ffff);
  within(
    "max_inbound_window_update_frames_per_data_frame_sent",
    message.maxInboundWindowUpdateFramesPerDataFrameSent,
    1,
    0xffff_ffff,
  );
  within("max_outbound_frames", message.maxOutboundFrames, 1, 0xffff_ffff);
  within("max_outbound_control_frames", message.maxOutboundControlFrames, 1, 0xffff_ffff);
  const keepAlive = compileKeepAlive(message.connectionKeepalive, place, problems);
  return {
    headerTableBytes: message.hpackTableSize ?? fallback.headerTableBytes,
    maxConcurrentStreams: message.maxConcurrentStreams ?? fallback.maxConcurrentStreams,
    initialStreamWindowBytes: message.initialStreamWindowSize ?? fallback.initialStreamWindowBytes,
    initialConnectionWindowBytes: message.initialConnectionWindowSize ?? fallback.initialConnectionWindowBytes,
    allowConnect: message.allowConnect,
    maxOutboundFrames: message.maxOutboundFrames ?? fallback.maxOutboundFrames,
    maxOutboundControlFrames: message.maxOutboundControlFrames ?? fallback.maxOutboundControlFrames,
    maxConsecutiveInboundFramesWithEmptyPayload:
      message.maxConsecutiveInboundFramesWithEmptyPayload ?? fallback.maxConsecutiveInboundFramesWithEmptyPayload,
    maxInboundPriorityFramesPerStream:
      message.maxInboundPriorityFramesPerStream ?? fallback.maxInboundPriorityFramesPerStream,
    maxInboundWindowUpdateFramesPerDataFrameSent:
      message.maxInboundWindowUpdateFramesPerDataFrameSent ?? fallback.maxInboundWindowUpdateFramesPerDataFrameSent,
    keepAlive,
  };
}

const defaultJitterPercent = 15;

/** Envoy pings without an interval too, before the first stream after a while (connection_idle_interval). */
function compileKeepAlive(
  message: KeepaliveSettings | undefined,
  place: Place,
  problems: Problems,
): Http2KeepAlive | undefined {
  if (message === undefined) return undefined;
  const at = place.field("connection_keepalive");
  const { interval, timeout, intervalJitter } = message;
  if (timeout === undefined) problems.error(at.field("timeout"), "value is required");
  for (const [name, value] of [
    ["interval", interval],
    ["timeout", timeout],
  ] as const) {
    if (value !== undefined && durationMs(value, 0) < 1)
      problems.error(at.field(name), "value must be greater than or equal to 1ms");
  }
  const jitterPercent = intervalJitter?.value ?? defaultJitterPercent;
  if (!(jitterPercent >= 0 && jitterPercent <= 100))
    problems.error(at.field("interval_jitter"), "value must be inside range [0, 100]");
  return interval && { intervalMs: durationMs(interval, 0), jitterPercent, timeoutMs: durationMs(timeout, 0) };
}
