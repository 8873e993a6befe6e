/** Deployment: a number of equal pods. */
import { boolean, defaulted, integer, list, map, object, optional, required, string } from "../schema/schema.ts";
import type { ObjectValue, Report } from "../schema/schema.ts";
import { labelKey, labelValue } from "../schema/label-formats.ts";
import { defineKind } from "./definition.ts";
import { subdomainNamedMetadata, templateMetadata } from "./metadata.ts";
import { podSpec } from "./pod-spec.ts";

const deploymentFields = {
  replicas: defaulted(integer({ minimum: 0 }), 1, "Number of pods."),
  selector: required(
    object({
      matchLabels: optional(map(string(labelValue), labelKey), "Labels."),
      matchExpressions: optional(
        list(
          object({
            key: required(string(labelKey), "Label."),
            operator: required(string(), "In, NotIn, Exists, DoesNotExist."),
            values: optional(list(string()), "Values."),
          }),
        ),
        "Conditions on labels.",
      ),
    }),
    "Which pods belong to the Deployment.",
  ),
  template: required(
    object({ metadata: optional(templateMetadata, "Labels and annotations."), spec: required(podSpec, "What runs.") }),
    "What each pod is.",
  ),
  paused: optional(boolean(), "Whether changes wait."),
} as const;

/** Kubernetes refuses a Deployment whose own pods it would not find. */
function selectorFindsTemplate(spec: ObjectValue<typeof deploymentFields>, report: Report): void {
  const labels = spec.template.metadata?.labels ?? {};
  for (const [key, value] of Object.entries(spec.selector.matchLabels ?? {})) {
    if (labels[key] === value) continue;
    report({
      path: ["selector", "matchLabels", key],
      message: `the selector asks for the label ${key}: ${value}, which the pod template does not have`,
      suggestion: `Add ${key}: ${value} to spec.template.metadata.labels.`,
    });
  }
}

export const deployment = defineKind({
  kind: "Deployment",
  plural: "deployments",
  shortNames: ["deploy"],
  apiVersions: ["apps/v1"],
  scope: "Namespaced",
  affects: "nothing",
  writtenBy: "user",
  unknownField: "warning",
  description: "A number of equal pods.",
  schema: object(
    {
      metadata: required(subdomainNamedMetadata, "Metadata."),
      spec: required(
        object(deploymentFields, {
          rules: [selectorFindsTemplate],
          unread: ["minReadySeconds", "progressDeadlineSeconds", "revisionHistoryLimit", "strategy"],
        }),
        "The Deployment.",
      ),
    },
    { unread: ["status"] },
  ),
});
