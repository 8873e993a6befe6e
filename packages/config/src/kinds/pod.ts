/** Pod: one running instance of a workload, its address and its state. */
import { conditions } from "./conditions.ts";
import { boolean, enumeration, integer, list, object, optional, required, string } from "../schema/schema.ts";
import { defineKind } from "./definition.ts";
import { subdomainNamedMetadata } from "./metadata.ts";
import { podSpec } from "./pod-spec.ts";

const containerState = object(
  {
    waiting: optional(
      object({
        reason: optional(string(), "Reason in one word."),
        message: optional(string(), "Reason in a sentence."),
      }),
      "It does not run yet, or not now.",
    ),
    terminated: optional(
      object(
        {
          exitCode: optional(integer(), "Exit status."),
          signal: optional(integer(), "Signal that ended it."),
          reason: optional(string(), "Reason in one word."),
          message: optional(string(), "Reason in a sentence."),
        },
        { unread: ["containerID", "finishedAt", "startedAt"] },
      ),
      "It has ended.",
    ),
  },
  { unread: ["running"] },
);

const podStatus = object(
  {
    phase: optional(enumeration(["Pending", "Running", "Succeeded", "Failed", "Unknown"]), "Phase."),
    podIP: optional(string(), "Address."),
    podIPs: optional(list(object({ ip: optional(string(), "Address.") })), "Addresses."),
    conditions: conditions("Ready"),
    containerStatuses: optional(
      list(
        object(
          {
            name: required(string(), "Container."),
            ready: optional(boolean(), "Whether it is ready."),
            restartCount: optional(integer({ minimum: 0 }), "Restarts."),
            state: optional(containerState, "What it does now."),
          },
          {
            unread: [
              "allocatedResources",
              "allocatedResourcesStatus",
              "containerID",
              "image",
              "imageID",
              "lastState",
              "resources",
              "started",
              "stopSignal",
              "user",
              "volumeMounts",
            ],
          },
        ),
      ),
      "State of the containers.",
    ),
    startTime: optional(string(), "Start (RFC 3339)."),
    reason: optional(string(), "Reason in one word."),
    message: optional(string(), "Reason in a sentence."),
  },
  {
    unread: [
      "ephemeralContainerStatuses",
      "hostIP",
      "hostIPs",
      "initContainerStatuses",
      "nominatedNodeName",
      "observedGeneration",
      "qosClass",
      "resize",
      "resourceClaimStatuses",
    ],
  },
);

export const pod = defineKind({
  kind: "Pod",
  plural: "pods",
  shortNames: ["po"],
  apiVersions: ["v1"],
  scope: "Namespaced",
  affects: "endpoints",
  writtenBy: "platform",
  unknownField: "warning",
  description: "One running instance of a workload.",
  schema: object({
    metadata: required(subdomainNamedMetadata, "Metadata."),
    spec: required(podSpec, "What runs."),
    status: optional(podStatus, "Address and state."),
  }),
});
