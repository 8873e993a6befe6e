// What an HTTP/2 connection is given (Envoy: `config.core.v3.Http2ProtocolOptions`, with its names and defaults but
// where said).
import { defaultWindowBytes } from "./frame.ts";

export interface Http2Options {
  /** SETTINGS_HEADER_TABLE_SIZE of ours. */
  readonly headerTableBytes: number;
  /** Streams of the peer at once. */
  readonly maxConcurrentStreams: number;
  /** What a stream may bring before it is read. */
  readonly initialStreamWindowBytes: number;
  /** The same of all streams of a connection. */
  readonly initialConnectionWindowBytes: number;
  /** Extended CONNECT (RFC 8441). */
  readonly allowConnect: boolean;
  /** Heads of answers that wait for a peer that does not read; bodies wait in their windows. */
  readonly maxOutboundFrames: number;
  /** PING and SETTINGS answers and resets that wait for a peer that does not read. */
  readonly maxOutboundControlFrames: number;
  readonly maxConsecutiveInboundFramesWithEmptyPayload: number;
  readonly maxInboundPriorityFramesPerStream: number;
  readonly maxInboundWindowUpdateFramesPerDataFrameSent: number;
  /** Undefined = no pings. */
  readonly keepAlive: Http2KeepAlive | undefined;
}

/** Envoy: KeepaliveSettings. */
export interface Http2KeepAlive {
  readonly intervalMs: number;
  /** Each pause is longer by up to this share of it, drawn anew, so that many connections do not ping at once. */
  readonly jitterPercent: number;
  /** How long an answer may take. Any byte of the peer begins it anew: an answer may wait behind a large message. */
  readonly timeoutMs: number;
}

/**
 * Of clients. Envoy allows 2^31 − 1 streams and windows of 16 MiB and more. Here a stalled stream may hold its window's
 * bytes, so that windows are what a round trip of a millisecond needs at 2 Gbit/s.
 */
export const defaultHttp2Options: Http2Options = {
  headerTableBytes: 4096,
  maxConcurrentStreams: 1024,
  initialStreamWindowBytes: 4 * defaultWindowBytes,
  initialConnectionWindowBytes: 16 * defaultWindowBytes,
  allowConnect: false,
  maxOutboundFrames: 10_000,
  maxOutboundControlFrames: 1000,
  maxConsecutiveInboundFramesWithEmptyPayload: 1,
  maxInboundPriorityFramesPerStream: 100,
  maxInboundWindowUpdateFramesPerDataFrameSent: 10,
  keepAlive: undefined,
};

/**
 * Of hosts. Many clients share a connection: four that read nothing must not close its window to the others, so that it
 * is Envoy's.
 */
export const defaultUpstreamHttp2Options: Http2Options = {
  ...defaultHttp2Options,
  initialConnectionWindowBytes: 24 * 1024 * 1024,
};
