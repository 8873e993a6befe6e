// A roll-out as the API tells it: where it stands, what it waits for, and what speaks for and against it.
import type { RolloutSpec } from "@tulle/config";
import type { RolloutMetricView, RolloutView } from "@tulle/config/api";
import type { Verdict } from "./judge-metric.ts";
import { activeMetrics, type Place, progressOf, metricKey, type RolloutState, type Wait } from "./rollout-machine.ts";
import { headerText, rolloutPlan, type RolloutPlan, stepText } from "./rollout-plan.ts";
import type { RolloutName } from "./rollout-target.ts";

export interface ViewConditions {
  readonly wait: Wait | undefined;
  readonly waiting: ReadonlyMap<string, Exclude<Verdict, { type: "judged" }>>;
  readonly notSaved: string | undefined;
  readonly isEdited: boolean;
  readonly isCanaryGone: boolean;
}

export function rolloutView(
  { namespace, name }: RolloutName,
  spec: RolloutSpec,
  state: RolloutState | undefined,
  conditions: ViewConditions,
): RolloutView {
  const plan = rolloutPlan(spec);
  const { stable, canary } = spec;
  const version = ({ subset, labels = {} }: RolloutSpec["stable"]): string =>
    subset ??
    Object.entries(labels)
      .map(([key, value]) => `${key}=${value}`)
      .join(",");
  const untilMs = conditions.wait?.type === "paused" ? conditions.wait.untilMs : undefined;
  return {
    namespace,
    name,
    host: spec.host,
    stable: version(stable),
    canary: version(canary),
    strategy: spec.strategy.canary === undefined ? "blueGreen" : "canary",
    phase: phaseOf(state, conditions),
    message: messageOf(state, conditions),
    weight: state?.weight ?? 0,
    isLaid: state !== undefined,
    ...(state?.headerMatch === undefined ? {} : { headerRoute: headerText(state.headerMatch) }),
    step: state?.step ?? 0,
    steps: plan.steps.map(stepText),
    ...(untilMs === undefined ? {} : { pauseEndsAt: timeText(untilMs) }),
    metrics: state === undefined ? [] : metricsOf(state, plan, conditions.waiting),
    isEdited: conditions.isEdited,
    revision: state?.revision ?? 0,
    ...(state === undefined ? {} : { startedAt: timeText(state.startedAtMs) }),
    ...(state?.endedAtMs === undefined ? {} : { endedAt: timeText(state.endedAtMs) }),
    history: (state?.history ?? []).map(({ atMs, text }) => ({ at: timeText(atMs), text })),
  };
}

function phaseOf(state: RolloutState | undefined, { wait, notSaved }: ViewConditions): RolloutView["phase"] {
  if (state === undefined) return "Idle";
  if (state.outcome === "completed") return "Completed";
  if (state.outcome === "aborted") return "Aborted";
  return wait?.type === "paused" || notSaved !== undefined ? "Paused" : "Progressing";
}

function messageOf(state: RolloutState | undefined, { wait, waiting, notSaved, isCanaryGone }: ViewConditions): string {
  if (notSaved !== undefined) return notSaved;
  if (state === undefined) return "has not been started; requests go where the routes say";
  if (state.outcome === "completed") return "everything goes to the canary";
  if (state.outcome === "aborted") return `everything goes to the stable version: ${state.reason}`;
  if (isCanaryGone && (state.weight > 0 || state.headerMatch !== undefined))
    return "no pod of the canary is ready: everything goes to the stable version meanwhile";
  const few = [...waiting.values()].map(({ text }) => text);
  const message = wait?.message ?? "goes on";
  return few.length === 0 || wait?.type !== "analysis" ? message : `${message}: ${few.join("; ")}`;
}

/** Those that are measured now, and those that have ended the roll-out. */
function metricsOf(
  state: RolloutState,
  plan: RolloutPlan,
  waiting: ViewConditions["waiting"],
): readonly RolloutMetricView[] {
  const active = new Set(activeMetrics(state, plan).map(({ key }) => key));
  const step = plan.steps[state.step];
  const all = [
    ...(step?.type === "analysis" ? step.metrics.map((metric) => ({ place: "step" as Place, metric })) : []),
    ...(plan.background?.metrics ?? []).map((metric) => ({ place: "background" as Place, metric })),
  ];
  return all.flatMap(({ place, metric }): readonly RolloutMetricView[] => {
    const key = metricKey(place, metric);
    const { good, bad, last } = progressOf(state, key);
    if (!active.has(key) && last === undefined) return [];
    const waits = waiting.get(key)?.text;
    return [
      {
        name: metric.name,
        place,
        good,
        bad,
        failureLimit: metric.failureLimit,
        ...(place === "step" ? { count: metric.count } : {}),
        ...(last === undefined ? {} : { last: { at: timeText(last.atMs), isGood: last.isGood, text: last.text } }),
        ...(waits === undefined ? {} : { waiting: waits }),
      },
    ];
  });
}

function timeText(ms: number): string {
  return new Date(ms).toISOString();
}
