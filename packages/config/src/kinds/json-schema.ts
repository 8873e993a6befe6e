/**
 * A kind's schema as an OpenAPI v3 schema in the structural form that Kubernetes asks of CRDs: the same description
 * that checks manifests here lets the API server check them there.
 */
import { kindDefinitions } from "./kinds.ts";
import type { Kind } from "./kinds.ts";
import type { FieldNode, Node, ObjectNode } from "../schema/schema.ts";

export type JsonSchema = { readonly [keyword: string]: unknown };

/** The schema of whole objects of `kind`, `apiVersion` and `kind` included. */
export function toJsonSchema(kind: Kind): JsonSchema {
  const definition = kindDefinitions[kind];
  const body = renderNode(definition.schema.node);
  const properties = body["properties"] as Readonly<Record<string, JsonSchema>>;
  return {
    ...body,
    description: definition.description,
    required: ["apiVersion", "kind", ...((body["required"] ?? []) as readonly string[])],
    properties: {
      apiVersion: { type: "string", enum: definition.apiVersions },
      kind: { type: "string", enum: [kind] },
      ...properties,
    },
  };
}

function renderNode(node: Node): JsonSchema {
  switch (node.type) {
    case "string":
      return { type: "string", ...node.format?.jsonSchema };
    case "enum":
      // Neither JSON Schema nor Kubernetes knows an enumeration without regard to case.
      return node.ignoreCase
        ? { type: "string", pattern: `^(?i:${node.values.join("|")})$` }
        : { type: "string", enum: node.values };
    case "integer":
    case "number":
      return {
        type: node.type,
        ...(node.minimum === undefined ? {} : { minimum: node.minimum }),
        ...(node.maximum === undefined ? {} : { maximum: node.maximum }),
      };
    case "boolean":
      return { type: "boolean" };
    case "intOrString":
      return { "x-kubernetes-int-or-string": true };
    case "json":
      return { "x-kubernetes-preserve-unknown-fields": true };
    case "list":
      return {
        type: "array",
        items: renderNode(node.items),
        ...(node.minItems > 0 ? { minItems: node.minItems } : {}),
      };
    case "map":
      return { type: "object", additionalProperties: renderNode(node.values) };
    case "object":
      return renderObject(node);
    default:
      return node satisfies never;
  }
}

function renderObject(node: ObjectNode): JsonSchema {
  const properties: Record<string, JsonSchema> = {};
  for (const [name, field] of Object.entries(node.fields)) properties[name] = renderField(field);
  for (const name of node.unread) properties[name] = { "x-kubernetes-preserve-unknown-fields": true };
  const required = Object.entries(node.fields)
    .filter(([, field]) => field.required)
    .map(([name]) => name);
  const choices = [
    ...node.exactlyOne.map((names) => ({ oneOf: names.map((name) => ({ required: [name] })) })),
    ...node.atMostOne.map((names) => ({
      oneOf: [
        { not: { anyOf: names.map((name) => ({ required: [name] })) } },
        ...names.map((name) => ({ required: [name] })),
      ],
    })),
  ];
  return {
    type: "object",
    properties,
    ...(required.length === 0 ? {} : { required }),
    ...(choices.length === 0 ? {} : choices.length === 1 ? choices[0] : { allOf: choices }),
  };
}

function renderField(field: FieldNode): JsonSchema {
  const notes = [
    field.description,
    field.status === "notImplemented" ? `Not implemented yet: it ${field.effect}.` : "",
    field.status === "narrows" ? "Not implemented yet: a resource with it is refused." : "",
    field.deprecated === undefined ? "" : `Deprecated: write ${field.deprecated}.`,
  ];
  return {
    ...renderNode(field.node),
    description: notes.filter((note) => note !== "").join(" "),
    ...(field.default === undefined ? {} : { default: field.default }),
  };
}
