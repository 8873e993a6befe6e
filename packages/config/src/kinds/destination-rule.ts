/** DestinationRule: subsets of a service and the policy of traffic to it. Field list of Istio 1.31. */
import { list, map, object, optional, required, string } from "../schema/schema.ts";
import { exportedNamespace, subsetName, wildcardName } from "../schema/formats.ts";
import { labelKey, labelValue, selectedLabelKey, selectedLabelValue } from "../schema/label-formats.ts";
import type { Report } from "../schema/schema.ts";
import { exportsFit } from "./exported-namespaces.ts";
import { noDryRun } from "./dry-run.ts";
import { defineKind, networkingApiVersions } from "./definition.ts";
import { subdomainNamedMetadata } from "./metadata.ts";
import { trafficPolicy } from "./traffic-policy.ts";

const subset = object({
  name: required(string(subsetName), "Name that routes use."),
  labels: optional(map(string(labelValue), labelKey), "Labels of the pods that belong to the subset."),
  trafficPolicy: optional(trafficPolicy, "Policy of the subset, over the rule's own."),
});

/** Istio's validation: the workloads of a selector are those of the rule's own namespace. */
function staysAtHome(
  {
    metadata,
    spec,
  }: {
    readonly metadata: { readonly namespace?: string };
    readonly spec: { readonly workloadSelector?: unknown; readonly exportTo?: readonly string[] };
  },
  report: Report,
): void {
  const own = metadata.namespace ?? "default";
  if (spec.workloadSelector === undefined || (spec.exportTo ?? []).every((each) => each === "." || each === own))
    return;
  report({
    path: ["spec", "exportTo"],
    message: 'a rule with a "workloadSelector" is for clients of its own namespace alone',
    suggestion: 'Leave it out, or write ["."].',
  });
}

export const destinationRule = defineKind({
  kind: "DestinationRule",
  plural: "destinationrules",
  shortNames: ["dr"],
  apiVersions: networkingApiVersions,
  scope: "Namespaced",
  affects: "routing",
  writtenBy: "user",
  unknownField: "error",
  description: "Subsets of a service and the policy of traffic to it.",
  schema: object(
    {
      metadata: required(subdomainNamedMetadata, "Metadata."),
      spec: required(
        object(
          {
            host: required(string(wildcardName), "Service that the rule is for."),
            trafficPolicy: optional(trafficPolicy, "Policy of all traffic to the service."),
            subsets: optional(list(subset, { uniqueBy: "name" }), "Named parts of the service."),
            exportTo: optional(
              list(string(exportedNamespace)),
              "Further namespaces that see the rule; all when missing.",
            ),
            workloadSelector: optional(
              object({ matchLabels: optional(map(string(selectedLabelValue), selectedLabelKey), "Labels.") }),
              "Client workloads of its namespace that the rule is for.",
            ),
          },
          { rules: [exportsFit] },
        ),
        "The rule.",
      ),
    },
    { unread: ["status"], rules: [noDryRun, staysAtHome] },
  ),
});
