// What is logged of a stream that its client gave up.
import type { StreamResetReason } from "../codec/stream-codec.ts";
import type { ResponseFlag } from "../http/response-flags.ts";

interface DownstreamReset {
  readonly flag: ResponseFlag;
  readonly details: string;
}

const disconnected: DownstreamReset = { flag: "DC", details: "downstream_remote_disconnect" };
/** Streams of a connection that goes on, or whose client answers no pings, in Envoy's words. */
const downstreamResets: Readonly<Partial<Record<StreamResetReason, DownstreamReset>>> = {
  remote_reset: { flag: "DR", details: "http2.remote_reset" },
  remote_refused_stream_reset: { flag: "DR", details: "http2.remote_refuse" },
  connection_timeout: { flag: "DC", details: "downstream_local_disconnect(http2_ping_timeout)" },
  protocol_error: { flag: "DPE", details: "http2.violation.of.messaging.rule" },
};

export function downstreamReset(reason: StreamResetReason): DownstreamReset {
  return downstreamResets[reason] ?? disconnected;
}
