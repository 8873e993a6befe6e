// When parts of a request and its answer came and went, as events of a span (Envoy: HttpConnectionManager.Tracing's
// `verbose`, `annotateVerbose`).
import { streamPoints } from "../format/time-operators.ts";
import type { StreamInfo } from "../http/stream-info.ts";
import type { SpanHead, SpanWriter } from "./active-span.ts";

type Moment = readonly [name: string, point: (info: StreamInfo) => number];

const upstreamMoments: readonly Moment[] = [
  ["first_upstream_tx_byte_sent", streamPoints.US_TX_BEG],
  ["last_upstream_tx_byte_sent", streamPoints.US_TX_END],
  ["first_upstream_rx_byte_received", streamPoints.US_RX_BEG],
  ["last_upstream_rx_byte_received", streamPoints.US_RX_END],
];
const moments: readonly Moment[] = [
  ["last_downstream_rx_byte_received", streamPoints.DS_RX_END],
  ...upstreamMoments,
  ["first_downstream_tx_byte_sent", streamPoints.DS_TX_BEG],
  ["last_downstream_tx_byte_sent", streamPoints.DS_TX_END],
];

/** Of the span that has been begun: a request's, or that of its last try. What never came is not told. */
export function tellMoments(info: StreamInfo, { isOfRequest, startMs, endMs }: SpanHead, tracer: SpanWriter): void {
  for (const [name, point] of isOfRequest ? moments : upstreamMoments) {
    const monotonicMs = point(info);
    if (monotonicMs < 0) continue;
    const timeMs = info.startTimeMs + monotonicMs - info.startMonotonicMs;
    // The worker looks at its clock once a turn, a span has a time of its own.
    tracer.event(Math.min(endMs, Math.max(startMs, timeMs)), name, []);
  }
}
