// The fields of Telemetry's `spec`, and of what the mesh's configuration says of telemetry, as the schemas have them.
import { kindDefinitions, meshConfigFields, type Node } from "@tulle/config";
import { type FieldPath, fieldsBelow } from "../../tools/field-paths.ts";

const isAboutTelemetry = (name: string): boolean =>
  /^(defaultProviders|accessLog|enableTracing|enablePrometheus|disableEnvoyListenerLog|defaultConfig|extensionProviders)/.test(
    name,
  );
const isAuthorizer = (field: FieldPath): boolean => field.some((step) => step.startsWith("envoyExtAuthz"));

/** Below `spec` and `mesh`. */
export function fieldsOfTelemetry(): FieldPath[] {
  const { spec } = (kindDefinitions.Telemetry.schema.node as Extract<Node, { type: "object" }>).fields;
  const ofMesh = Object.entries(meshConfigFields).filter(([name]) => isAboutTelemetry(name));
  return [
    ...fieldsBelow(spec!.node, ["spec"]),
    ...ofMesh.flatMap(([name, { node }]) => [["mesh", name], ...fieldsBelow(node, ["mesh", name])]),
  ].filter((field) => !isAuthorizer(field));
}
