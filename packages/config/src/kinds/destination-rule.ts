/** DestinationRule: subsets of a service and the policy of traffic to it. Field list of Istio 1.31. */
import { list, map, object, optional, required, string } from "../schema/schema.ts";
import { dnsLabel, exportedNamespace, labelKey, labelValue, wildcardHost } from "../schema/formats.ts";
import { defineKind, networkingApiVersions } from "./definition.ts";
import { subdomainNamedMetadata } from "./metadata.ts";
import { trafficPolicy } from "./traffic-policy.ts";

const subset = object({
  name: required(string(dnsLabel), "Name that routes use."),
  labels: optional(map(string(labelValue), labelKey), "Labels of the pods that belong to the subset."),
  trafficPolicy: optional(trafficPolicy, "Policy of the subset, over the rule's own."),
});

export const destinationRule = defineKind({
  kind: "DestinationRule",
  plural: "destinationrules",
  shortNames: ["dr"],
  apiVersions: networkingApiVersions,
  scope: "Namespaced",
  unknownField: "error",
  description: "Subsets of a service and the policy of traffic to it.",
  schema: object(
    {
      metadata: required(subdomainNamedMetadata, "Metadata."),
      spec: required(
        object({
          host: required(string(wildcardHost), "Service that the rule is for."),
          trafficPolicy: optional(trafficPolicy, "Policy of all traffic to the service."),
          subsets: optional(list(subset, { uniqueBy: "name" }), "Named parts of the service."),
          exportTo: optional(
            list(string(exportedNamespace)),
            "Further namespaces that see the rule; all when missing.",
          ),
          workloadSelector: optional(
            object({ matchLabels: optional(map(string(labelValue), labelKey), "Labels.") }),
            "Client workloads of its namespace that the rule is for.",
          ),
        }),
        "The rule.",
      ),
    },
    { unread: ["status"] },
  ),
});
