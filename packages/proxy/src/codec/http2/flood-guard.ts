// Frames that cost us more than their sender: counted on each connection, which ends when there are too many. The
// counts and their names are Envoy's (`ProtocolConstraints`), the pace of resets is nghttp2's.
import type { Http2Options } from "./http2-options.ts";

/** The flood that ends a connection, as Envoy's counters name it. */
export type Flood =
  | "inbound_empty_frames_flood"
  | "inbound_priority_frames_flood"
  | "inbound_window_update_frames_flood"
  | "outbound_flood"
  | "outbound_control_flood"
  | "inbound_reset_flood"
  | "inbound_continuation_flood";

/** Streams that a client may reset at once, and how many more each second (CVE-2023-44487). */
const resetBurst = 1000;
const resetsPerSecond = 33;

/** Of one field section; 16 KiB fit into each (CVE-2024-27316). */
const maxContinuations = 8;

export class FloodGuard {
  readonly #options: Http2Options;
  #emptyFrames = 0;
  #priorityFrames = 0;
  #windowUpdates = 0;
  #dataFramesSent = 0;
  #streams = 0;
  #resetsLeft = resetBurst;
  #resetsAtMs = 0;

  constructor(options: Http2Options) {
    this.#options = options;
  }

  streamOpened(): void {
    this.#streams += 1;
  }

  dataFramesSent(count: number): void {
    this.#dataFramesSent += count;
  }

  /** A HEADERS, CONTINUATION or DATA frame without a byte in it that does not end its stream or its fields. */
  emptyFrame(): Flood | undefined {
    this.#emptyFrames += 1;
    const most = this.#options.maxConsecutiveInboundFramesWithEmptyPayload;
    return this.#emptyFrames > most ? "inbound_empty_frames_flood" : undefined;
  }

  fullFrame(): void {
    this.#emptyFrames = 0;
  }

  priorityFrame(): Flood | undefined {
    this.#priorityFrames += 1;
    const most = this.#options.maxInboundPriorityFramesPerStream * (1 + this.#streams);
    return this.#priorityFrames > most ? "inbound_priority_frames_flood" : undefined;
  }

  windowUpdate(): Flood | undefined {
    this.#windowUpdates += 1;
    const perData = this.#options.maxInboundWindowUpdateFramesPerDataFrameSent;
    const most = 5 + 2 * (this.#streams + perData * this.#dataFramesSent);
    return this.#windowUpdates > most ? "inbound_window_update_frames_flood" : undefined;
  }

  continuation(count: number): Flood | undefined {
    return count > maxContinuations ? "inbound_continuation_flood" : undefined;
  }

  /** The peer has given a stream up, or made us do so. */
  reset(nowMs: number): Flood | undefined {
    const gained = ((nowMs - this.#resetsAtMs) * resetsPerSecond) / 1000;
    this.#resetsLeft = Math.min(resetBurst, this.#resetsLeft + gained) - 1;
    this.#resetsAtMs = nowMs;
    return this.#resetsLeft < 0 ? "inbound_reset_flood" : undefined;
  }

  /** `waiting`: heads that the peer has not taken, while it asks for more. */
  heads(waiting: number): Flood | undefined {
    return waiting > this.#options.maxOutboundFrames ? "outbound_flood" : undefined;
  }

  /** `waiting`: answers to the peer's control frames that it has not taken. */
  controlFrames(waiting: number): Flood | undefined {
    return waiting > this.#options.maxOutboundControlFrames ? "outbound_control_flood" : undefined;
  }
}
