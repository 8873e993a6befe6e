// The states of a roll-out and what leads from one to the next: pure, on times that are handed in.
//
// - running: at one of its steps. It goes on to the next when that one is done, nobody has paused it, and nothing of
//   `Conditions` speaks against sending more to the canary.
// - completed: past its last step; the canary has all requests.
// - aborted: a person or an analysis has ended it; the stable version has all requests.
//
// Each keeps its weights until the roll-out is started again or deleted.
import type { HeaderRouteMatch, RolloutMetric, RolloutSpec } from "@tulle/config";
import { durationText, type PlanStep, type RolloutPlan, stepText } from "./rollout-plan.ts";

export interface RolloutState {
  /** How often it was started. */
  readonly revision: number;
  /** As it was started: an edit counts from the next start. */
  readonly spec: RolloutSpec;
  readonly startedAtMs: number;
  readonly endedAtMs?: number;
  readonly outcome: "running" | "completed" | "aborted";
  /** Why it was aborted. */
  readonly reason?: string;
  /** Number of the step, from 0; as many as there are once it has completed. */
  readonly step: number;
  readonly stepBeganAtMs: number;
  /** Percent of the requests that go to the canary. */
  readonly weight: number;
  readonly headerMatch?: HeaderRouteMatch;
  /** When it got more requests last. */
  readonly raisedAtMs?: number;
  readonly isPaused: boolean;
  /** By `metricKey`. */
  readonly measured: Readonly<Record<string, MetricProgress>>;
  /** Newest last. */
  readonly history: readonly HistoryEntry[];
}

export interface MetricProgress {
  readonly good: number;
  readonly bad: number;
  readonly last?: { readonly atMs: number; readonly isGood: boolean; readonly text: string };
}

export interface HistoryEntry {
  readonly atMs: number;
  readonly text: string;
}

/** Entries of one roll-out's history. */
export const maxHistory = 100;

/** What speaks against sending more requests to the canary. */
export interface Conditions {
  /** The weights cannot be laid over the mesh as it is. */
  readonly problem?: string | undefined;
  readonly frozen?: string | undefined;
  /** A version has no pod that is ready. */
  readonly noPods?: string | undefined;
}

/** What a roll-out waits for. */
export type Wait =
  /** Somebody, a time, or whoever takes an obstacle away. */
  | { readonly type: "paused"; readonly message: string; readonly untilMs?: number }
  | { readonly type: "pods"; readonly message: string }
  | { readonly type: "analysis"; readonly message: string };

export type Place = "step" | "background";

export interface ActiveMetric {
  readonly key: string;
  readonly place: Place;
  readonly metric: RolloutMetric;
}

export function metricKey(place: Place, { name }: RolloutMetric): string {
  return `${place}/${name}`;
}

export function started(spec: RolloutSpec, before: RolloutState | undefined, by: string, nowMs: number): RolloutState {
  const revision = (before?.revision ?? 0) + 1;
  return withEntry(
    {
      revision,
      spec,
      startedAtMs: nowMs,
      outcome: "running",
      step: 0,
      stepBeganAtMs: nowMs,
      weight: 0,
      isPaused: false,
      measured: {},
      history: before?.history ?? [],
    },
    nowMs,
    `started by ${by} (revision ${revision})`,
  );
}

/**
 * As an earlier process left it, whose clock may have been ahead: nothing of it happened later than now. A pause is as
 * long as it says at the most, and what was measured before the clock was set back is measured once more.
 */
export function notAfter(state: RolloutState, nowMs: number): RolloutState {
  const { raisedAtMs, measured } = state;
  const past = (atMs: number): number => Math.min(atMs, nowMs);
  const progress = Object.entries(measured).map(([key, { last, ...counts }]): [string, MetricProgress] => [
    key,
    last === undefined ? counts : { ...counts, last: { ...last, atMs: past(last.atMs) } },
  ]);
  return {
    ...state,
    startedAtMs: past(state.startedAtMs),
    stepBeganAtMs: past(state.stepBeganAtMs),
    ...(raisedAtMs === undefined ? {} : { raisedAtMs: past(raisedAtMs) }),
    measured: Object.fromEntries(progress),
  };
}

/** Takes every step that is done; what it waits for then, undefined once it has ended. */
export function advance(
  given: RolloutState,
  plan: RolloutPlan,
  conditions: Conditions,
  nowMs: number,
): { readonly state: RolloutState; readonly wait: Wait | undefined } {
  let state = given;
  for (;;) {
    if (state.outcome !== "running") return { state, wait: undefined };
    const step = plan.steps[state.step];
    const wait = waitOf(state, step, conditions, nowMs) ?? waitForBackground(state, step, plan);
    if (wait !== undefined) return { state, wait };
    state = step === undefined ? completed(state, nowMs) : pastStep(state, step, nowMs);
  }
}

function waitOf(
  state: RolloutState,
  step: PlanStep | undefined,
  { problem, frozen, noPods }: Conditions,
  nowMs: number,
): Wait | undefined {
  if (state.isPaused) return { type: "paused", message: "paused by a person: resume lets it go on" };
  if (problem !== undefined) return { type: "paused", message: problem };
  const isMore = step === undefined || raises(state, step);
  if (isMore && frozen !== undefined) return { type: "paused", message: frozen };
  if (isMore && noPods !== undefined) return { type: "pods", message: noPods };
  if (step?.type === "pause") return waitOfPause(step, state, nowMs);
  if (step?.type !== "analysis") return undefined;
  const left = step.metrics.filter((metric) => {
    const { good, bad } = progressOf(state, metricKey("step", metric));
    return good + bad < metric.count;
  });
  return left.length === 0
    ? undefined
    : { type: "analysis", message: `measures ${left.map(({ name }) => name).join(", ")}` };
}

function raises({ weight }: RolloutState, step: PlanStep): boolean {
  return step.type === "setWeight" ? step.weight > weight : step.type === "setHeaderRoute" && step.match !== undefined;
}

/** More goes to the canary only after all that is measured beside the steps was measured on what it has now. */
function waitForBackground(state: RolloutState, step: PlanStep | undefined, plan: RolloutPlan): Wait | undefined {
  const { raisedAtMs } = state;
  if (raisedAtMs === undefined || !(step === undefined || raises(state, step))) return undefined;
  if (state.weight === 0 && state.headerMatch === undefined) return undefined;
  const missing = activeMetrics(state, plan).filter(
    ({ key, place }) => place === "background" && (progressOf(state, key).last?.atMs ?? 0) <= raisedAtMs,
  );
  if (missing.length === 0) return undefined;
  return {
    type: "analysis",
    message: `measures ${missing.map(({ metric }) => metric.name).join(", ")} before it goes on`,
  };
}

function waitOfPause(
  { durationMs }: Extract<PlanStep, { type: "pause" }>,
  { stepBeganAtMs }: RolloutState,
  nowMs: number,
): Wait | undefined {
  if (durationMs === undefined) return { type: "paused", message: "waits until it is promoted or resumed" };
  const untilMs = stepBeganAtMs + durationMs;
  return untilMs <= nowMs
    ? undefined
    : { type: "paused", message: `pauses for ${durationText(untilMs - nowMs)} more`, untilMs };
}

export function progressOf({ measured }: RolloutState, key: string): MetricProgress {
  return measured[key] ?? { good: 0, bad: 0 };
}

/** What of the plan is measured where the roll-out stands; nothing once it has ended. */
export function activeMetrics(state: RolloutState, plan: RolloutPlan): readonly ActiveMetric[] {
  if (state.outcome !== "running") return [];
  const step = plan.steps[state.step];
  const ofStep = step?.type === "analysis" ? step.metrics : [];
  const { background } = plan;
  const beside = background !== undefined && state.step >= background.startingStep ? background.metrics : [];
  const active = (place: Place, metrics: readonly RolloutMetric[]): ActiveMetric[] =>
    metrics.map((metric) => ({ key: metricKey(place, metric), place, metric }));
  const left = active("step", ofStep).filter(({ key, metric }) => {
    const { good, bad } = progressOf(state, key);
    return good + bad < metric.count;
  });
  return [...left, ...active("background", beside)];
}

/** A metric has been judged. One that was bad too often ends the roll-out. */
export function judged(
  state: RolloutState,
  { key, metric }: ActiveMetric,
  { isGood, text }: { readonly isGood: boolean; readonly text: string },
  nowMs: number,
): RolloutState {
  const before = progressOf(state, key);
  const progress = {
    good: before.good + (isGood ? 1 : 0),
    bad: before.bad + (isGood ? 0 : 1),
    last: { atMs: nowMs, isGood, text },
  };
  const next = { ...state, measured: { ...state.measured, [key]: progress } };
  if (isGood) return next;
  if (progress.bad > metric.failureLimit) return aborted(next, `${metric.name}: ${text}`, nowMs);
  return withEntry(next, nowMs, `${metric.name} was bad, ${progress.bad} of ${metric.failureLimit} borne: ${text}`);
}

export function paused(state: RolloutState, by: string, nowMs: number): RolloutState {
  return state.isPaused ? state : withEntry({ ...state, isPaused: true }, nowMs, `paused by ${by}`);
}

/** Ends a person's pause, and that of the step where it waits for a person. */
export function resumed(state: RolloutState, plan: RolloutPlan, by: string, nowMs: number): RolloutState {
  const step = plan.steps[state.step];
  const going = withEntry({ ...state, isPaused: false }, nowMs, `resumed by ${by}`);
  const waits = step?.type === "pause" && step.durationMs === undefined && !state.isPaused;
  return waits ? pastStep(going, step, nowMs) : going;
}

/** Passes over the step where it stands; or over all that are left. */
export function promoted(
  state: RolloutState,
  plan: RolloutPlan,
  { isFull, by }: { readonly isFull: boolean; readonly by: string },
  nowMs: number,
): RolloutState {
  const step = plan.steps[state.step];
  const going = withEntry(
    { ...state, isPaused: false },
    nowMs,
    isFull ? `promoted by ${by}, past all steps` : `promoted by ${by}`,
  );
  if (isFull || step === undefined) return completed(going, nowMs);
  return pastStep(going, step, nowMs);
}

export function aborted(state: RolloutState, reason: string, nowMs: number): RolloutState {
  const { headerMatch: _gone, ...rest } = state;
  const at = state.weight;
  return withEntry(
    { ...rest, outcome: "aborted", reason, weight: 0, isPaused: false, endedAtMs: nowMs },
    nowMs,
    `aborted at ${at} %, everything goes to the stable version: ${reason}`,
  );
}

function completed(state: RolloutState, nowMs: number): RolloutState {
  const { headerMatch: _gone, ...rest } = state;
  return withEntry(
    { ...rest, outcome: "completed", weight: 100, endedAtMs: nowMs },
    nowMs,
    "completed: everything goes to the canary",
  );
}

function pastStep(state: RolloutState, step: PlanStep, nowMs: number): RolloutState {
  const { headerMatch, measured, ...rest } = state;
  const background = Object.entries(measured).filter(([key]) => key.startsWith("background/"));
  const match = step.type === "setHeaderRoute" ? step.match : headerMatch;
  return withEntry(
    {
      ...rest,
      ...(match === undefined ? {} : { headerMatch: match }),
      ...(raises(state, step) ? { raisedAtMs: nowMs } : {}),
      weight: step.type === "setWeight" ? step.weight : state.weight,
      step: state.step + 1,
      stepBeganAtMs: nowMs,
      measured: Object.fromEntries(background),
    },
    nowMs,
    `step ${state.step + 1} is done: ${stepText(step)}`,
  );
}

/** Says what people should know of later. */
export function noted(state: RolloutState, text: string, nowMs: number): RolloutState {
  return withEntry(state, nowMs, text);
}

function withEntry(state: RolloutState, atMs: number, text: string): RolloutState {
  return { ...state, history: [...state.history, { atMs, text }].slice(-maxHistory) };
}
