// Jittered exponential back-off, so that a thousand proxies do not come back to a restarted control plane in step.

export interface BackOffLimits {
  readonly baseMs: number;
  readonly maxMs: number;
}

/**
 * The wait before try number `attempt` (0 is the first retry): between half and all of `baseMs` doubled for each try.
 * `random` gives numbers from 0 up to 1.
 */
export function backOffMs(limits: BackOffLimits, attempt: number, random: () => number): number {
  const ceiling = Math.min(limits.maxMs, limits.baseMs * 2 ** Math.min(attempt, 30));
  return Math.round(ceiling / 2 + (random() * ceiling) / 2);
}
