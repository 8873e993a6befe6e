/** The rendered schemas are structural as Kubernetes asks of CRDs, and every field explains itself. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { kindDefinitions, kinds } from "./kinds.ts";
import type { JsonSchema } from "./json-schema.ts";
import { toJsonSchema } from "./json-schema.ts";
import type { Node } from "../schema/schema.ts";

/** What a structural schema may hold of types (apiextensions.k8s.io/v1). */
const types = new Set(["string", "integer", "number", "boolean", "array", "object"]);

function checkStructural(schema: JsonSchema, path: string): void {
  const isTyped = types.has(String(schema["type"]));
  const isOpen =
    schema["x-kubernetes-preserve-unknown-fields"] === true || schema["x-kubernetes-int-or-string"] === true;
  assert.ok(isTyped !== isOpen, `${path} has either a type or is open`);
  const properties = (schema["properties"] ?? {}) as Readonly<Record<string, JsonSchema>>;
  for (const [name, property] of Object.entries(properties)) checkStructural(property, `${path}.${name}`);
  for (const name of (schema["required"] ?? []) as readonly string[]) assert.ok(name in properties, `${path}.${name}`);
  if (schema["items"] !== undefined) checkStructural(schema["items"] as JsonSchema, `${path}[]`);
  if (schema["additionalProperties"] !== undefined) {
    checkStructural(schema["additionalProperties"] as JsonSchema, `${path}.*`);
  }
}

function checkDescriptions(node: Node, path: string): void {
  if (node.type === "list") checkDescriptions(node.items, `${path}[]`);
  else if (node.type === "map") checkDescriptions(node.values, `${path}.*`);
  else if (node.type === "object") {
    for (const [name, field] of Object.entries(node.fields)) {
      // Two characters: "A." would be the shortest sentence.
      assert.match(field.description, /^\S.+\.$/, `${path}.${name} has a description`);
      checkDescriptions(field.node, `${path}.${name}`);
    }
  }
}

for (const kind of kinds) {
  test(`schema of ${kind}`, () => {
    const schema = toJsonSchema(kind);
    checkStructural(schema, kind);
    checkDescriptions(kindDefinitions[kind].schema.node, kind);
    assert.deepEqual(JSON.parse(JSON.stringify(schema)), schema);
  });
}

test("a schema as it is rendered", () => {
  const spec = (toJsonSchema("VirtualService")["properties"] as Readonly<Record<string, JsonSchema>>)["spec"]!;
  const fields = spec["properties"] as Readonly<Record<string, JsonSchema>>;
  assert.deepEqual(fields["exportTo"], {
    type: "array",
    items: { type: "string", minLength: 1, maxLength: 63 },
    description: "Namespaces that see the routes; all when missing.",
  });
  assert.deepEqual(fields["hosts"], {
    type: "array",
    items: { type: "string", minLength: 1, maxLength: 255 },
    description: "Hosts that the routes are for.",
    default: [],
  });
  const gateway = toJsonSchema("Gateway");
  assert.deepEqual(gateway["required"], ["apiVersion", "kind", "metadata", "spec"]);
});
