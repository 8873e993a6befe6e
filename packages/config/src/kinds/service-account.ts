/** ServiceAccount: the identity that workloads run under. */
import { object, required } from "../schema/schema.ts";
import { defineKind } from "./definition.ts";
import { subdomainNamedMetadata } from "./metadata.ts";

export const serviceAccount = defineKind({
  kind: "ServiceAccount",
  plural: "serviceaccounts",
  shortNames: ["sa"],
  apiVersions: ["v1"],
  scope: "Namespaced",
  affects: "nothing",
  writtenBy: "user",
  unknownField: "warning",
  description: "The identity that workloads run under.",
  schema: object(
    { metadata: required(subdomainNamedMetadata, "Metadata.") },
    { unread: ["secrets", "imagePullSecrets", "automountServiceAccountToken"] },
  ),
});
