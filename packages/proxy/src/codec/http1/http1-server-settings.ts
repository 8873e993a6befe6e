// What a server connection of HTTP/1.1 is told by its connection manager.
import type { RequestHeadLimits } from "./request-head.ts";

export interface Http1ServerSettings extends RequestHeadLimits {
  readonly maxHeadBytes: number;
  readonly enableTrailers: boolean;
  readonly bufferLimitBytes: number;
  /** 0 = none, as for the other one. */
  readonly idleTimeoutMs: number;
  readonly headersTimeoutMs: number;
  /** 0 = the connection goes with the last byte that is written. */
  readonly delayedCloseMs: number;
}
