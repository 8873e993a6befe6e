// What of the mesh a roll-out goes by, and what all of them together lay over its routes.
import { overlayProblem, type OverlaidParts, type RolloutOverlay } from "../snapshot/rollout-overlay.ts";
import type { EndpointSnapshot } from "../snapshot/mesh-snapshot.ts";
import { frozenReason } from "./freeze.ts";
import { keyOfEntry, type RolloutEntry } from "./rollout-entry.ts";
import type { Conditions, RolloutState } from "./rollout-machine.ts";
import * as target from "./rollout-target.ts";
import type { RolloutStates } from "./saved-rollouts.ts";

/** Notes of the entry whether its canary is gone. */
export function conditionsOf(
  entry: RolloutEntry,
  { spec }: RolloutState,
  parts: OverlaidParts,
  endpoints: EndpointSnapshot,
  nowMs: number,
): Conditions {
  const host = target.hostOf(spec, entry.namespace, parts);
  const state = entry.state ?? { spec };
  const weight = Math.max(1, entry.state?.weight ?? 1);
  const unanswered = [...entry.waiting.values()].find(({ type }) => type === "unanswered")?.text;
  const problem = overlayProblem(parts, target.overlayOf(entry, state, host, weight)) ?? unanswered;
  const ready = target.readyVersions(spec, host, parts, endpoints);
  entry.isCanaryGone = problem === undefined && !ready.has("canary") && ready.has("stable");
  const noPods = ready.has("canary") ? undefined : "no pod of the canary is ready";
  return { problem, frozen: frozenReason(entry.resource.spec.freeze, nowMs), noPods };
}

/** One a host: the first of them. */
export function overlaysOf(entries: Iterable<RolloutEntry>, parts: OverlaidParts): readonly RolloutOverlay[] {
  const hosts = new Set<string>();
  return [...entries].flatMap((entry) => {
    const { state } = entry;
    if (state === undefined) return [];
    const host = target.hostOf(state.spec, entry.namespace, parts);
    if (hosts.has(host)) return [];
    hosts.add(host);
    const isGone = state.outcome === "running" && entry.isCanaryGone;
    const { headerMatch: _none, ...withoutHeader } = state;
    return [target.overlayOf(entry, isGone ? withoutHeader : state, host, isGone ? 0 : state.weight)];
  });
}

/** All of them, one as it will be. */
export function statesOf(entries: Iterable<RolloutEntry>, one?: RolloutEntry, next?: RolloutState): RolloutStates {
  const states = new Map<string, RolloutState>();
  for (const each of entries) {
    const state = each === one ? next : each.state;
    if (state !== undefined) states.set(keyOfEntry(each), state);
  }
  return states;
}
