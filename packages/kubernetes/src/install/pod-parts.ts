// Parts of pods that every chart's have alike.
import { isSet, type Manifest, type Template, value, when } from "./template.ts";
import type { ComponentName, LeafPath } from "./values.ts";

/** What the Pod Security level `restricted` asks of a container, and a root that nobody writes to. */
export const restricted = {
  allowPrivilegeEscalation: false,
  readOnlyRootFilesystem: true,
  runAsNonRoot: true,
  capabilities: { drop: ["ALL"] },
  seccompProfile: { type: "RuntimeDefault" },
} as const;

export const pullSecrets = {
  imagePullSecrets: when(isSet("global.imagePullSecrets"), value("global.imagePullSecrets")),
} as const;

export function scheduling(component: Exclude<ComponentName, "base">): Readonly<Record<string, Template>> {
  const chosen = (name: "nodeSelector" | "tolerations" | "affinity"): Template => {
    const path: LeafPath = `${component}.${name}`;
    return when(isSet(path), value(path));
  };
  return { nodeSelector: chosen("nodeSelector"), tolerations: chosen("tolerations"), affinity: chosen("affinity") };
}

/** Not `minAvailable`, which would keep a node from being drained where one runs alone. */
export function disruptionBudget(metadata: Template, matchLabels: Template): Manifest {
  return {
    apiVersion: "policy/v1",
    kind: "PodDisruptionBudget",
    metadata,
    spec: { maxUnavailable: 1, selector: { matchLabels } },
  };
}

/** Over nodes and zones, where there are several. */
export function spread(labels: Template): Readonly<Record<string, Template>> {
  const over = (topologyKey: string): Template => ({
    maxSkew: 1,
    topologyKey,
    whenUnsatisfiable: "ScheduleAnyway",
    labelSelector: { matchLabels: labels },
    // Those that a roll-out is about to end do not count: without it both new ones may land on one node.
    matchLabelKeys: ["pod-template-hash"],
  });
  return { topologySpreadConstraints: [over("kubernetes.io/hostname"), over("topology.kubernetes.io/zone")] };
}
