/** What a security policy is attached to, in the words that AuthorizationPolicy and RequestAuthentication share. */
import { list, map, narrowing, object, optional, required, string } from "../schema/schema.ts";
import { labelKey, labelValue, nonEmpty } from "../schema/formats.ts";

const targetReference = object({
  group: optional(string(), "API group of the target."),
  kind: required(string(nonEmpty), "Kind of the target."),
  name: required(string(nonEmpty), "Name of the target."),
  namespace: optional(string(), "Namespace of the target; that of the policy."),
});

export const policyTargetFields = {
  selector: optional(
    object({ matchLabels: optional(map(string(labelValue), labelKey), "Labels that the workloads have.") }),
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
