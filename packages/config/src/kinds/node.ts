/** Node: a machine of a cluster; its labels say in which zone and region it is. */
import { object, required } from "../schema/schema.ts";
import { defineKind } from "./definition.ts";
import { subdomainNamedMetadata } from "./metadata.ts";

export const node = defineKind({
  kind: "Node",
  plural: "nodes",
  shortNames: ["no"],
  apiVersions: ["v1"],
  scope: "Cluster",
  affects: "endpoints",
  writtenBy: "platform",
  unknownField: "warning",
  description: "A machine of the cluster; its labels say where it is.",
  schema: object({ metadata: required(subdomainNamedMetadata, "Metadata.") }, { unread: ["spec", "status"] }),
});
