/** What a security policy is attached to, in the words that AuthorizationPolicy and RequestAuthentication share. */
import { list, map, narrowing, object, optional, required, string } from "../schema/schema.ts";
import type { Report } from "../schema/schema.ts";
import { nonEmpty } from "../schema/formats.ts";
import { selectedLabelKey, selectedLabelValue } from "../schema/label-formats.ts";

const targetKinds = [
  { group: "", kind: "Service" },
  { group: "networking.istio.io", kind: "ServiceEntry" },
  { group: "gateway.networking.k8s.io", kind: "Gateway" },
  { group: "gateway.networking.k8s.io", kind: "GatewayClass" },
] as const;

interface TargetReference {
  readonly group?: string;
  readonly kind: string;
  readonly namespace?: string;
}

/** Istio's validation: the target lies in the policy's own namespace, and is one of these. */
function isTarget({ group = "", kind, namespace = "" }: TargetReference, report: Report): void {
  if (namespace !== "") {
    report({
      path: ["namespace"],
      message: "the target is always in the namespace of the policy",
      suggestion: "Leave it out.",
    });
  }
  const ofGroup = group === "core" ? "" : group;
  if (targetKinds.some((each) => each.group === ofGroup && each.kind === kind)) return;
  const known = targetKinds.map((each) => (each.group === "" ? each.kind : `${each.kind} of ${each.group}`));
  const found = ofGroup === "" ? kind : `${kind} of ${group}`;
  report({ path: ["kind"], message: `${found} is no target of a policy; targets are ${known.join(", ")}` });
}

/** What the policy is for is said once. */
export function oneTarget(
  spec: { readonly selector?: unknown; readonly targetRef?: unknown; readonly targetRefs?: readonly unknown[] },
  report: Report,
): void {
  const names = (["selector", "targetRef", "targetRefs"] as const).filter((name) => spec[name] !== undefined);
  if (names.length > 1) report({ path: [names[1]!], message: `only one of ${names.join(", ")} is possible` });
}

const targetReference = object(
  {
    group: optional(string(), "API group of the target."),
    kind: required(string(nonEmpty), "Kind of the target."),
    name: required(string(nonEmpty), "Name of the target."),
    namespace: optional(string(), "Namespace of the target; that of the policy."),
  },
  { rules: [isTarget] },
);

const selector = object({
  matchLabels: optional(map(string(selectedLabelValue), selectedLabelKey), "Labels that the workloads have."),
});

export const policyTargetFields = {
  selector: optional(
    selector,
    "The workloads that the policy holds for; all of the namespace when missing, all of the mesh in a root namespace.",
  ),
  targetRef: narrowing(
    targetReference,
    "Gateway or Service that the policy holds for.",
    "the policy would hold for every workload of the namespace",
  ),
  targetRefs: narrowing(
    list(targetReference),
    "Gateways and Services that the policy holds for.",
    "the policy would hold for every workload of the namespace",
    [[]],
  ),
} as const;

/** The same where targets are honoured. */
export const heldTargetFields = {
  selector: optional(
    selector,
    "The workloads that it holds for; all of the namespace when missing, all of the mesh in a root namespace.",
  ),
  targetRef: optional(targetReference, "Gateway that it holds for, as `targetRefs` with one entry."),
  targetRefs: optional(
    list(targetReference),
    "Gateways of the Gateway API that it holds for: of workloads with the label gateway.networking.k8s.io/gateway-name. Services are those of waypoints, which there are none of.",
  ),
} as const;
