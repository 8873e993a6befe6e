// Asks a check again and again and tells when its verdict changes, by Kubernetes' thresholds.

/** `foreign`: somebody else answers in the program's place, which is no matter of thresholds. */
export type CheckResult = boolean | "foreign";

export interface ProbeTiming {
  readonly initialDelayMs: number;
  readonly periodMs: number;
  /** Successes in a row until the verdict is "well". */
  readonly successThreshold: number;
  /** Failures in a row, a period apart, until the verdict is "not well". */
  readonly failureThreshold: number;
}

interface TimingFields {
  readonly initialDelaySeconds?: number | undefined;
  readonly periodSeconds?: number | undefined;
  readonly successThreshold?: number | undefined;
  readonly failureThreshold?: number | undefined;
}

/** Kubernetes' defaults for what a probe leaves out; zero counts as left out, except for the delay. */
export function timingOf(fields: TimingFields): ProbeTiming {
  return {
    initialDelayMs: (fields.initialDelaySeconds ?? 0) * 1000,
    periodMs: (fields.periodSeconds || 10) * 1000,
    successThreshold: fields.successThreshold || 1,
    failureThreshold: fields.failureThreshold || 3,
  };
}

// A start on one machine takes a fraction of a second: waiting a whole period for the first success would be most of
// it.
const firstPauseMs = 20;
const pauseGrowth = 1.3;

export interface ProbeLoop {
  stop(): void;
}

/**
 * Runs until stopped. The verdict is unknown at first; `onVerdict` is told of each change of it, and of every further
 * failure that completes the threshold again (a liveness probe restarts its container each time).
 */
export function startProbeLoop(
  check: () => Promise<CheckResult>,
  timing: ProbeTiming,
  onVerdict: (well: boolean) => void,
): ProbeLoop {
  let stopped = false;
  let timer: NodeJS.Timeout | undefined;
  let verdict: boolean | undefined;
  let successesInARow = 0;
  /** Time since the first of the failures in a row; undefined after a success. */
  let failingForMs: number | undefined;
  let pauseMs = Math.min(firstPauseMs, timing.periodMs);

  const ask = async (): Promise<void> => {
    const result = await check();
    if (stopped) return;
    const well = result === true;
    successesInARow = well ? successesInARow + 1 : 0;
    // Failures count by time: at first the questions come much faster than once a period.
    failingForMs = well ? undefined : failingForMs === undefined ? 0 : failingForMs + pauseMs;
    if (well && verdict !== true && successesInARow >= timing.successThreshold) {
      verdict = true;
      onVerdict(true);
    } else if (
      result === "foreign" ||
      (failingForMs !== undefined && failingForMs >= (timing.failureThreshold - 1) * timing.periodMs)
    ) {
      verdict = false;
      failingForMs = undefined;
      onVerdict(false);
    }
    if (stopped) return;
    pauseMs = verdict === true ? timing.periodMs : Math.min(timing.periodMs, pauseMs * pauseGrowth);
    timer = setTimeout(() => void ask(), pauseMs);
  };
  timer = setTimeout(() => void ask(), timing.initialDelayMs);
  return {
    stop: () => {
      stopped = true;
      clearTimeout(timer);
    },
  };
}
