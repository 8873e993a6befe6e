// Why a roll-out cannot start in the mesh as it is.
import type { Rollout, RolloutSpec } from "@tulle/config";
import type { OverlaidParts } from "../snapshot/rollout-overlay.ts";
import type { ResourceReader } from "../snapshot/resource-reader.ts";
import type { RolloutEntry } from "./rollout-entry.ts";
import { rolloutPlan } from "./rollout-plan.ts";
import { countedWorkloads, hostOf, startProblem } from "./rollout-target.ts";

export interface Surroundings {
  readonly parts: OverlaidParts;
  readonly reader: ResourceReader;
  readonly entries: readonly RolloutEntry[];
  /** In the store's order. */
  readonly all: readonly Rollout[];
}

/** Undefined where nothing speaks against it. */
export function whyNotStart(entry: RolloutEntry, spec: RolloutSpec, mesh: Surroundings): string | undefined {
  return startProblem(entry, spec, mesh.parts) ?? overlap(entry, spec, mesh) ?? sharedWorkload(entry, spec, mesh);
}

/** The first one of a host counts, and whichever has its weights laid. */
function overlap(entry: RolloutEntry, spec: RolloutSpec, { parts, entries, all }: Surroundings): string | undefined {
  const host = hostOf(spec, entry.namespace, parts);
  const orderOf = ({ resource }: RolloutEntry): number => all.findIndex((each) => each === resource);
  const other = entries.find(({ namespace, name, resource, state }) => {
    if (namespace === entry.namespace && name === entry.name) return false;
    if (hostOf((state ?? resource).spec, namespace, parts) !== host) return false;
    return state !== undefined || all.indexOf(resource) < orderOf(entry);
  });
  return other && `the Rollout ${other.namespace}/${other.name} is of that host, too`;
}

function sharedWorkload({ namespace }: RolloutEntry, spec: RolloutSpec, mesh: Surroundings): string | undefined {
  const { steps, background } = rolloutPlan(spec);
  const ofSteps = steps.flatMap((step) => (step.type === "analysis" ? step.metrics : []));
  const metrics = [...ofSteps, ...(background?.metrics ?? [])];
  if (metrics.every(({ prometheus }) => prometheus !== undefined)) return undefined;
  const { shared } = countedWorkloads(spec, hostOf(spec, namespace, mesh.parts), mesh.parts, mesh.reader);
  return shared && `${shared} runs pods of both versions, so that their requests cannot be told apart`;
}
