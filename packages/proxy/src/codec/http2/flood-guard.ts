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
  | "inbound_settings_flood"
  | "inbound_continuation_flood";

/**
 * Streams that a client may reset at once, and how many more each second (CVE-2023-44487); as often a peer may change
 * the windows of all its streams, which clients of gRPC do while they learn how much a network holds, and send empty
 * frames of bodies that nobody waits for.
 */
const burst = 1000;
const perSecond = 33;

/** Of one field section; 16 KiB fit into each (CVE-2024-27316). */
const maxContinuations = 8;

export class FloodGuard {
  readonly #options: Http2Options;
  #emptyFrames = 0;
  #priorityFrames = 0;
  #windowUpdates = 0;
  #dataFramesSent = 0;
  #streams = 0;
  #resets: Allowance | undefined = undefined;
  #windowChanges: Allowance | undefined = undefined;
  #lateEmptyData: Allowance | undefined = undefined;

  constructor(options: Http2Options) {
    this.#options = options;
  }

  streamOpened(): void {
    this.#streams += 1;
  }

  dataFramesSent(count: number): void {
    this.#dataFramesSent += count;
  }

  /** A frame of fields, or of an unknown type, without a byte in it that does not end anything. */
  emptyFrame(): Flood | undefined {
    this.#emptyFrames += 1;
    const most = this.#options.maxConsecutiveInboundFramesWithEmptyPayload;
    return this.#emptyFrames > most ? "inbound_empty_frames_flood" : undefined;
  }

  /**
   * The same of a body, counted by stream: clients of nghttp2 write one before their trailers, so that several stand
   * side by side where several streams end at once. Without a stream: it is over, and the frame was under way.
   */
  emptyData(stream: { emptyFrames: number } | undefined, nowMs: number): Flood | undefined {
    if (stream === undefined) {
      this.#lateEmptyData ??= new Allowance();
      return this.#lateEmptyData.take(nowMs) ? undefined : "inbound_empty_frames_flood";
    }
    stream.emptyFrames += 1;
    const most = this.#options.maxConsecutiveInboundFramesWithEmptyPayload;
    return stream.emptyFrames > most ? "inbound_empty_frames_flood" : undefined;
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
    this.#resets ??= new Allowance();
    return this.#resets.take(nowMs) ? undefined : "inbound_reset_flood";
  }

  /** Its SETTINGS change the windows of all streams. */
  windowChange(nowMs: number): Flood | undefined {
    this.#windowChanges ??= new Allowance();
    return this.#windowChanges.take(nowMs) ? undefined : "inbound_settings_flood";
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

/** So many at once, and more with time; most connections never need one. */
class Allowance {
  #left = burst;
  #atMs = 0;

  take(nowMs: number): boolean {
    const gained = ((nowMs - this.#atMs) * perSecond) / 1000;
    this.#left = Math.min(burst, this.#left + gained) - 1;
    this.#atMs = nowMs;
    return this.#left >= 0;
  }
}
