// How long a process that ended waits before it starts again.

const firstDelayMs = 200;
const longestDelayMs = 30_000;
/** A process that ran this long had started well: its next failure counts as the first. */
export const stableAfterMs = 30_000;

/** Doubles from 200 ms to 30 s with the number of failures in a row, the first being 1. */
export function restartDelayMs(failuresInARow: number): number {
  return Math.min(longestDelayMs, firstDelayMs * 2 ** Math.min(failuresInARow - 1, 16));
}
