// What the controller knows of one roll-out.
import type { Rollout } from "@tulle/config";
import type { Verdict } from "./judge-metric.ts";
import type { RolloutEvidence } from "./rollout-evidence.ts";
import { noted, type RolloutState, type Wait } from "./rollout-machine.ts";
import type { Version } from "./traffic-counts.ts";

export interface RolloutEntry {
  readonly namespace: string;
  readonly name: string;
  resource: Rollout;
  state: RolloutState | undefined;
  wait: Wait | undefined;
  /** Of metrics that cannot be judged now. */
  readonly waiting: Map<string, Exclude<Verdict, { type: "judged" }>>;
  evidence: RolloutEvidence | undefined;
  /** When each metric is judged next; never while it is. */
  readonly dueAtMs: Map<string, number>;
  /** Every workload seen: one whose pods are all gone is still the version that it was. */
  readonly workloads: Map<string, Version>;
  /** See `RolloutState.raisedAtMs`: what is measured begins anew when the canary gets more. */
  measuredSinceMs: number | undefined;
  /** Requests of a canary without a pod that is ready go to the stable version meanwhile. */
  isCanaryGone: boolean;
  /** Its history says who else has an agent's address: once for each time that it is measured anew. */
  isStrangerTold: boolean;
  notSaved: string | undefined;
  cancel: () => void;
}

export function newEntry(resource: Rollout): RolloutEntry {
  const { namespace, name } = resource.metadata;
  return {
    namespace,
    name,
    resource,
    state: undefined,
    wait: undefined,
    waiting: new Map(),
    evidence: undefined,
    dueAtMs: new Map(),
    workloads: new Map(),
    measuredSinceMs: undefined,
    isCanaryGone: false,
    isStrangerTold: false,
    notSaved: undefined,
    cancel: () => undefined,
  };
}

export function keyOfEntry({ namespace, name }: RolloutEntry): string {
  return `${namespace}/${name}`;
}

/** What has been counted so far counts no more. */
export function measureAnew(entry: RolloutEntry): void {
  entry.evidence = undefined;
  entry.isStrangerTold = false;
  entry.dueAtMs.clear();
  entry.waiting.clear();
}

/** Into its history, where they are not told of yet. */
export function tellStrangers(
  entry: RolloutEntry,
  state: RolloutState,
  strangers: string | undefined,
  nowMs: number,
): RolloutState {
  if (strangers === undefined || entry.isStrangerTold || state.outcome !== "running") return state;
  entry.isStrangerTold = true;
  return noted(state, strangers, nowMs);
}

export function sameText(one: unknown, other: unknown): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}
