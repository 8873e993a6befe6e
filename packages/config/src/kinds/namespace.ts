/** Namespace: its labels decide whether workloads get a sidecar. */
import { object, required } from "../schema/schema.ts";
import { defineKind } from "./definition.ts";
import { labelNamedMetadata } from "./metadata.ts";

export const namespace = defineKind({
  kind: "Namespace",
  plural: "namespaces",
  shortNames: ["ns"],
  apiVersions: ["v1"],
  scope: "Cluster",
  affects: "nothing",
  writtenBy: "user",
  unknownField: "warning",
  description: "A room for names; its labels switch injection.",
  schema: object({ metadata: required(labelNamedMetadata, "Metadata.") }, { unread: ["spec", "status"] }),
});
