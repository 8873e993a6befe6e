// When a workload asks for its next certificate: at half life, with jitter, and again and again with growing pauses
// when that fails. A pure state machine: the agent feeds it events, does what the state says, and sleeps until
// `renewalDueMs`.
import type { WorkloadCertificate } from "./workload-certificate.ts";

/**
 * - `requesting`: a request is on its way; the current certificate, if there is one, serves meanwhile.
 * - `waiting`: the current certificate is in its first half; ask at `atMs`.
 * - `retrying`: the last request failed; ask again at `atMs`. The current certificate, if there is one, serves as long
 *   as it is valid.
 *
 * Events: `due` (a timer's: begins a request when it is time), `issued`, `failed`, `rootsReplaced` (the current
 * certificate with another trust bundle; its times stay), `renewSoon` (the authority asks everyone to come again:
 * spread over a hundredth of a life), `unusable` (the current certificate is worth nothing any more, because its root
 * is trusted no longer: begins a request at once).
 */
export type RenewalState =
  | { readonly phase: "requesting"; readonly current: WorkloadCertificate | undefined; readonly failures: number }
  | { readonly phase: "waiting"; readonly current: WorkloadCertificate; readonly atMs: number }
  | {
      readonly phase: "retrying";
      readonly current: WorkloadCertificate | undefined;
      readonly failures: number;
      readonly atMs: number;
      readonly reason: string;
    };

export type RenewalEvent =
  | { readonly type: "due" }
  | { readonly type: "issued"; readonly certificate: WorkloadCertificate }
  | { readonly type: "failed"; readonly reason: string }
  | { readonly type: "rootsReplaced"; readonly certificate: WorkloadCertificate }
  | { readonly type: "renewSoon" }
  | { readonly type: "unusable" };

/**
 * Share of the life after which to renew, and by how much that varies (Istio's SECRET_GRACE_PERIOD_RATIO and its
 * jitter).
 */
const renewAfter = 0.5;
const jitter = 0.01;
const firstPauseMs = 500;
const longestPauseMs = 60_000;

/** At start, with the certificate that was kept over a restart, or none. `random` gives numbers in [0, 1). */
export function startRenewal(
  current: WorkloadCertificate | undefined,
  nowMs: number,
  random: () => number = Math.random,
): RenewalState {
  if (current === undefined) return { phase: "requesting", current, failures: 0 };
  return stepRenewal(waitFor(current, random), { type: "due" }, nowMs, random);
}

/**
 * The next state; the same object when the event changes nothing. An event that does not fit its phase is a late one.
 */
export function stepRenewal(
  state: RenewalState,
  event: RenewalEvent,
  nowMs: number,
  random: () => number = Math.random,
): RenewalState {
  switch (event.type) {
    case "due":
      if (state.phase === "requesting" || !isDue(state, nowMs)) return state;
      return { phase: "requesting", current: state.current, failures: state.phase === "retrying" ? state.failures : 0 };
    case "issued":
      return state.phase === "requesting" ? waitFor(event.certificate, random) : state;
    case "failed":
      return state.phase === "requesting" ? retryLater(state, event.reason, nowMs, random) : state;
    case "rootsReplaced":
      // Not for a certificate that has been renewed in the meantime: that came with newer roots.
      return state.current?.leaf.serial === event.certificate.leaf.serial
        ? { ...state, current: event.certificate }
        : state;
    case "renewSoon": {
      if (state.phase !== "waiting") return state;
      const soonMs = nowMs + jitter * lifeMs(state.current) * random();
      return soonMs < state.atMs ? { ...state, atMs: soonMs } : state;
    }
    case "unusable":
      // One that is on its way already is checked against the new roots when it comes.
      return state.phase === "requesting" ? state : { phase: "requesting", current: state.current, failures: 0 };
  }
}

/**
 * Earlier than planned where the clock was set back: no pause is that long, and peers take no certificate of the
 * future.
 */
function isDue(state: Exclude<RenewalState, { phase: "requesting" }>, nowMs: number): boolean {
  if (nowMs >= state.atMs) return true;
  return state.phase === "retrying" ? state.atMs - nowMs > longestPauseMs : nowMs < state.current.leaf.notBeforeMs;
}

/** When `due` is to be sent; undefined while a request is on its way. */
export function renewalDueMs(state: RenewalState): number | undefined {
  return state.phase === "requesting" ? undefined : state.atMs;
}

/** The moment between 49 % and 51 % of the life at which this certificate is renewed. */
export function renewalTimeMs(certificate: WorkloadCertificate, random: () => number): number {
  const share = renewAfter + jitter * (2 * random() - 1);
  return certificate.obtainedAtMs + share * lifeMs(certificate);
}

function waitFor(current: WorkloadCertificate, random: () => number): RenewalState {
  return { phase: "waiting", current, atMs: renewalTimeMs(current, random) };
}

/**
 * Doubling pauses, each between half and all of its length, never more than a tenth of what is left of the certificate.
 */
function retryLater(
  state: Extract<RenewalState, { phase: "requesting" }>,
  reason: string,
  nowMs: number,
  random: () => number,
): RenewalState {
  const { current } = state;
  const failures = state.failures + 1;
  const leftMs = current === undefined ? Infinity : current.leaf.notAfterMs - nowMs;
  const pauseMs = Math.min(firstPauseMs * 2 ** Math.min(failures - 1, 20), longestPauseMs);
  const boundedMs = leftMs > 0 ? Math.max(Math.min(pauseMs, leftMs / 10), firstPauseMs) : pauseMs;
  const atMs = nowMs + boundedMs * (0.5 + random() / 2);
  return { phase: "retrying", current, failures, atMs, reason };
}

function lifeMs(certificate: WorkloadCertificate): number {
  return Math.max(0, certificate.leaf.notAfterMs - certificate.obtainedAtMs);
}
