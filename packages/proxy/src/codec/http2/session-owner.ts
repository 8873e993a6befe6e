// The end that a session stands on: the server's connection, or the client's.
import type { Http2Stream } from "./http2-stream.ts";
import type { FieldSection } from "./section-gatherer.ts";
import type { SessionFailure } from "./session-failure.ts";

export interface SessionOwner {
  readonly isServer: boolean;
  /**
   * A whole field section. `stream` is undefined where it opens one (a client's request); what is wrong with it is the
   * owner's to answer. It has to be decoded in every case.
   */
  onFieldSection(streamId: number, stream: Http2Stream | undefined, section: FieldSection): void;
  /** The peer takes no further streams than those up to the given one. */
  onGoAway(lastStreamId: number, errorCode: number): void;
  /** The peer's first SETTINGS are here, or later ones. */
  onPeerSettings(): void;
  onHeadBegin(streamId: number): void;
  onHeadEnd(): void;
  /** A stream is over on both sides. */
  onStreamClosed(): void;
  /** The connection ends for what the peer did; the frame that says so has been written. */
  onFailure(failure: SessionFailure): void;
  /** It answers no pings. */
  onSilence(): void;
  readonly bytesReceived: number;
}
