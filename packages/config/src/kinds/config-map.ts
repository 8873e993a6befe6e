/**
 * ConfigMap: texts of applications, which the mesh does not look at, but for one of a root namespace that holds the
 * configuration of the mesh.
 */
import { boolean, map, object, optional, required, string } from "../schema/schema.ts";
import type { ObjectValue, Report } from "../schema/schema.ts";
import { secretKey } from "../schema/formats.ts";
import { isMeshConfig, meshConfigKey, readMeshConfig } from "../mesh-config/mesh-config.ts";
import { meshNetworksKey, readMeshNetworks } from "../mesh-config/mesh-networks.ts";
import { formatPath } from "../findings/places.ts";
import { subdomainNamedMetadata } from "./metadata.ts";
import { defineKind } from "./definition.ts";

const configMapFields = {
  metadata: required(subdomainNamedMetadata, "Metadata."),
  data: optional(map(string(), secretKey), "Texts by key."),
  immutable: optional(boolean(), "Kubernetes refuses changes; nothing else is decided by it."),
} as const;

/** What is read of a text, by its key. */
const texts = [
  [meshConfigKey, readMeshConfig],
  [meshNetworksKey, readMeshNetworks],
] as const;

function meshConfigFits({ metadata, data }: ObjectValue<typeof configMapFields>, report: Report): void {
  const key = { metadata: { name: metadata.name, namespace: metadata.namespace ?? "" } };
  if (!isMeshConfig(key)) return;
  for (const [name, read] of texts) {
    const text = data?.[name];
    if (text === undefined) continue;
    for (const { code, severity, path, message, suggestion } of read(text).problems) {
      report({
        // What a field that nobody knows would do is unknown too; everything else stays in effect.
        code: code === "IST0106" && severity === "warning" ? "IST0133" : code,
        path: ["data", name],
        message: path.length === 0 ? `${name}: ${message}` : `${name}: ${formatPath(path)}: ${message}`,
        ...(suggestion === undefined ? {} : { suggestion }),
      });
    }
  }
}

export const configMap = defineKind({
  kind: "ConfigMap",
  plural: "configmaps",
  shortNames: ["cm"],
  apiVersions: ["v1"],
  scope: "Namespaced",
  affects: "routing",
  writtenBy: "user",
  unknownField: "warning",
  description: "Texts by key: of applications, and of the mesh as a whole.",
  schema: object(configMapFields, { unread: ["binaryData"], rules: [meshConfigFits] }),
});
