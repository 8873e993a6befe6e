/**
 * PeerAuthentication: whether a workload's ports ask their callers for a certificate. Field list of Istio 1.31
 * (security.istio.io).
 */
import { enumeration, defaulted, map, object, optional, required, string } from "../schema/schema.ts";
import type { ObjectValue, Report } from "../schema/schema.ts";
import { selectedLabelKey, selectedLabelValue } from "../schema/label-formats.ts";
import type { Format } from "../schema/formats.ts";
import { isPortNumber } from "./authorization-formats.ts";
import { noDryRun } from "./dry-run.ts";
import { defineKind, securityApiVersions } from "./definition.ts";
import { subdomainNamedMetadata } from "./metadata.ts";

const mutualTls = object({
  mode: optional(
    enumeration(["UNSET", "DISABLE", "PERMISSIVE", "STRICT"]),
    "STRICT takes mutual TLS alone, PERMISSIVE plain text too, DISABLE plain text alone; UNSET inherits.",
  ),
});

const listeningPort: Format = {
  name: "port",
  description: "a port number from 1 to 65535",
  check: (value) => (isPortNumber(value) && Number(value) > 0 ? undefined : `"${value}" is not a port number`),
};

const fields = {
  selector: optional(
    object({
      matchLabels: optional(map(string(selectedLabelValue), selectedLabelKey), "Labels that the workloads have."),
    }),
    "The workloads that the policy holds for; all of the namespace when missing, all of the mesh in a root namespace.",
  ),
  mtls: optional(mutualTls, "Mode of all ports."),
  portLevelMtls: optional(map(mutualTls, listeningPort), "Modes of single ports that the workload listens on."),
} as const;

/** Istio's validation: the ports of a whole namespace have nothing in common. */
function portsOfSelected(spec: ObjectValue<typeof fields>, report: Report): void {
  if (spec.portLevelMtls === undefined) return;
  if (Object.keys(spec.portLevelMtls).length === 0) {
    report({ path: ["portLevelMtls"], message: "it names no port", suggestion: "Leave it out." });
    return;
  }
  if (Object.keys(spec.selector?.matchLabels ?? {}).length > 0) return;
  report({
    path: ["portLevelMtls"],
    message: "modes of single ports need a selector",
    suggestion: "Choose the workloads whose ports are meant with a selector.",
  });
}

export const peerAuthentication = defineKind({
  kind: "PeerAuthentication",
  plural: "peerauthentications",
  shortNames: ["pa"],
  apiVersions: securityApiVersions,
  scope: "Namespaced",
  affects: "routing",
  writtenBy: "user",
  unknownField: "error",
  description: "Whether a workload's ports ask their callers for a certificate.",
  schema: object(
    {
      metadata: required(subdomainNamedMetadata, "Metadata."),
      spec: defaulted(object(fields, { rules: [portsOfSelected] }), {}, "The policy; it inherits when it is empty."),
    },
    { unread: ["status"], rules: [noDryRun] },
  ),
});
