// A Rollout's strategy as one list of steps: blue-green is a preview, a switch and a time to take it back, which are
// steps like any others.
import { type HeaderRouteMatch, parseDuration, type RolloutMetric, type RolloutSpec } from "@tulle/config";

export type PlanStep =
  | { readonly type: "setWeight"; readonly weight: number }
  /** Without a match no header leads to the canary any more. */
  | { readonly type: "setHeaderRoute"; readonly match?: HeaderRouteMatch }
  /** Without a duration it ends when somebody says so. */
  | { readonly type: "pause"; readonly durationMs?: number; readonly purpose?: string }
  | { readonly type: "analysis"; readonly metrics: readonly RolloutMetric[] };

export interface RolloutPlan {
  readonly steps: readonly PlanStep[];
  /** What is measured beside the steps, from the step of that number on. */
  readonly background?: { readonly metrics: readonly RolloutMetric[]; readonly startingStep: number };
}

export function rolloutPlan({ strategy: { canary, blueGreen } }: RolloutSpec): RolloutPlan {
  if (canary !== undefined) {
    const steps = canary.steps.map((step): PlanStep => {
      if (step.setWeight !== undefined) return { type: "setWeight", weight: step.setWeight };
      if (step.setHeaderRoute !== undefined) return headerRoute(step.setHeaderRoute.match);
      if (step.analysis !== undefined) return { type: "analysis", metrics: step.analysis.metrics };
      return pause(step.pause?.duration);
    });
    return { steps, ...(canary.analysis === undefined ? {} : { background: canary.analysis }) };
  }
  const { previewHeader, prePromotionAnalysis, postPromotionAnalysis, keepOldFor } = blueGreen ?? {};
  const steps: readonly (PlanStep | undefined)[] = [
    previewHeader && headerRoute(previewHeader),
    prePromotionAnalysis && { type: "analysis", metrics: prePromotionAnalysis.metrics },
    blueGreen?.autoPromotionEnabled === true ? undefined : { ...pause(undefined), purpose: "the preview" },
    { type: "setWeight", weight: 100 },
    previewHeader && headerRoute(undefined),
    postPromotionAnalysis && { type: "analysis", metrics: postPromotionAnalysis.metrics },
    keepOldFor === undefined ? undefined : { ...pause(keepOldFor), purpose: "the old version is kept" },
  ];
  return { steps: steps.filter((step) => step !== undefined) };
}

function headerRoute(match: HeaderRouteMatch | undefined): PlanStep {
  return match === undefined ? { type: "setHeaderRoute" } : { type: "setHeaderRoute", match };
}

function pause(duration: string | undefined): Extract<PlanStep, { type: "pause" }> {
  const durationMs = duration === undefined ? undefined : parseDuration(duration);
  return durationMs === undefined ? { type: "pause" } : { type: "pause", durationMs };
}

export function stepText(step: PlanStep): string {
  switch (step.type) {
    case "setWeight":
      return `${step.weight} % to the canary`;
    case "setHeaderRoute":
      return step.match === undefined ? "no more requests by header" : `requests with ${headerText(step.match)}`;
    case "pause": {
      const { durationMs, purpose = "pause" } = step;
      return durationMs === undefined ? `${purpose}, until promoted` : `${purpose} for ${durationText(durationMs)}`;
    }
    case "analysis":
      return `analysis: ${step.metrics.map(({ name }) => name).join(", ")}`;
  }
}

export function headerText({ name, exact, prefix, regex }: HeaderRouteMatch): string {
  if (exact !== undefined) return `${name}: ${exact}`;
  if (prefix !== undefined) return `${name}: ${prefix}…`;
  return regex === undefined ? `a header ${name}` : `${name} like ${regex}`;
}

export function durationText(ms: number): string {
  const seconds = Math.ceil(ms / 1000);
  if (seconds < 120) return `${seconds} s`;
  const minutes = Math.round(seconds / 60);
  return minutes < 120 ? `${minutes} min` : `${Math.round(minutes / 60)} h`;
}
