// Protobuf durations as milliseconds (google.protobuf.Duration).
import type { Duration } from "@bufbuild/protobuf/wkt";

/** Milliseconds, rounded up so that a positive duration never becomes 0 ("none"); `fallbackMs` when it is not set. */
export function durationMs(duration: Duration | undefined, fallbackMs: number): number {
  if (duration === undefined) return fallbackMs;
  return Math.ceil(Number(duration.seconds) * 1000 + duration.nanos / 1e6);
}
