// Asks a check again and again and tells when its verdict changes, by Kubernetes' thresholds.
import type { Check } from "./health-check.ts";

export interface ProbeTiming {
  readonly initialDelayMs: number;
  readonly periodMs: number;
  /** Successes in a row until the verdict is "well". */
  readonly successThreshold: number;
  /** Failures in a row until the verdict is "not well". */
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

// A start on one machine takes a fraction of a second: waiting a whole period for the first success would be most of it.
const firstPauseMs = 20;
const pauseGrowth = 1.3;

export interface ProbeLoop {
  stop(): void;
}

/**
 * Runs until stopped. The verdict is unknown at first; `onVerdict` is told of each change of it, and of every further failure
 * that completes the threshold again (a liveness probe restarts its container each time).
 */
export function startProbeLoop(check: Check, timing: ProbeTiming, onVerdict: (well: boolean) => void): ProbeLoop {
  let stopped = false;
  let timer: NodeJS.Timeout | undefined;
  let verdict: boolean | undefined;
  let inARow = 0;
  let pauseMs = Math.min(firstPauseMs, timing.periodMs);
  let lastAnswer: boolean | undefined;

  const ask = async (): Promise<void> => {
    const well = await check();
    if (stopped) return;
    inARow = well === lastAnswer ? inARow + 1 : 1;
    lastAnswer = well;
    const complete = inARow >= (well ? timing.successThreshold : timing.failureThreshold);
    if (complete && (verdict !== well || !well)) {
      verdict = well;
      if (!well) inARow = 0;
      onVerdict(well);
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
