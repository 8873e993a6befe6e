/** WorkloadGroup: what WorkloadEntries of one kind of machine have in common. Field list of Istio 1.31. */
import { integer, list, map, object, optional, required, string } from "../schema/schema.ts";
import { type Format, headerName, quote } from "../schema/formats.ts";
import { labelKey, labelValue } from "../schema/label-formats.ts";
import { noDryRun } from "./dry-run.ts";
import { defineKind, networkingApiVersions } from "./definition.ts";
import { subdomainNamedMetadata } from "./metadata.ts";
import { workloadFields } from "./workload-entry.ts";

const port = integer({ minimum: 1, maximum: 65_535 });
const count = integer({ minimum: 0, maximum: 2_147_483_647 });

const scheme: Format = {
  name: "scheme",
  description: "HTTP or HTTPS",
  check: (value) =>
    ["", "HTTP", "HTTPS"].includes(value) ? undefined : `${quote(value)} is not ${scheme.description}`,
  jsonSchema: { enum: ["", "HTTP", "HTTPS"] },
};

const probe = object(
  {
    initialDelaySeconds: optional(count, "Time before the first probe."),
    timeoutSeconds: optional(count, "Time limit of a probe."),
    periodSeconds: optional(count, "Time between probes."),
    successThreshold: optional(count, "Successes in a row until healthy."),
    failureThreshold: optional(count, "Failures in a row until unhealthy."),
    httpGet: optional(
      object({
        path: optional(string(), "Path."),
        port: required(port, "Port."),
        host: optional(string(), "Host."),
        scheme: optional(string(scheme), "HTTP or HTTPS."),
        httpHeaders: optional(
          list(object({ name: required(string(headerName), "Name."), value: optional(string(), "Value.") })),
          "Request headers.",
        ),
      }),
      "Answer 200 to 399 means healthy.",
    ),
    tcpSocket: optional(
      object({ host: optional(string(), "Host."), port: required(port, "Port.") }),
      "An accepted connection means healthy.",
    ),
    exec: optional(
      object({ command: required(list(string(), { minItems: 1 }), "Command.") }),
      "Exit code 0 means healthy.",
    ),
    grpc: optional(
      object({ port: required(port, "Port."), service: optional(string(), "Service.") }),
      "An answer SERVING of gRPC's health protocol means healthy.",
    ),
  },
  { exactlyOne: [["httpGet", "tcpSocket", "exec", "grpc"]] },
);

const groupFields = {
  metadata: optional(
    object({
      labels: optional(map(string(labelValue), labelKey), "Labels of the entries."),
      annotations: optional(map(string(), labelKey), "Annotations of the entries."),
    }),
    "Metadata of the entries.",
  ),
  template: required(object(workloadFields), "What the entries say; each machine's address is its own."),
  probe: optional(probe, "How a machine's readiness is asked, by the machine itself."),
} as const;

export const workloadGroup = defineKind({
  kind: "WorkloadGroup",
  plural: "workloadgroups",
  shortNames: ["wg"],
  apiVersions: networkingApiVersions,
  scope: "Namespaced",
  affects: "nothing",
  writtenBy: "user",
  unknownField: "error",
  description: "A template of WorkloadEntries.",
  schema: object(
    {
      metadata: required(subdomainNamedMetadata, "Metadata."),
      spec: required(object(groupFields), "The group."),
    },
    { unread: ["status"], rules: [noDryRun] },
  ),
});
