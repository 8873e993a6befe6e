/**
 * What is left of a refused document: its parts that are fine, as the types promise them. It is never applied. Analysis
 * reads it, so that one slip neither hides what else is wrong with the resource nor makes all that refers to it look
 * lost.
 */
import { isMapping } from "./check.ts";
import type { Node, ObjectNode } from "./schema.ts";

/** A field that is wrong, or that nothing is left of. */
const nothing = Symbol("nothing");

/** The resource itself and its spec stay whatever is missing in them: the resource is there, and others refer to it. */
const keptDepth = 2;

export function salvage(node: Node, value: unknown): unknown {
  return salvageAt(node, value, 0);
}

function salvageAt(node: Node, value: unknown, depth: number): unknown {
  switch (node.type) {
    case "string":
      return typeof value === "string" && node.format?.check(value) === undefined ? value : nothing;
    case "enum": {
      const text = String(value);
      return node.values.find((each) => each === text || (node.ignoreCase && each === text.toUpperCase())) ?? nothing;
    }
    case "integer":
    case "number": {
      const { minimum = -Infinity, maximum = Infinity } = node;
      const isFine = typeof value === "number" && value >= minimum && value <= maximum;
      return isFine && (node.type === "number" || Number.isSafeInteger(value)) ? value : nothing;
    }
    case "boolean":
      return typeof value === "boolean" ? value : nothing;
    case "intOrString":
      return typeof value === "string" || Number.isSafeInteger(value) ? value : nothing;
    case "json":
      return value;
    case "list":
      if (!Array.isArray(value)) return nothing;
      return value.map((item) => salvageAt(node.items, item, depth + 1)).filter((item) => item !== nothing);
    case "map": {
      if (!isMapping(value)) return nothing;
      const entries = Object.entries(value).map(
        ([key, item]) => [key, salvageAt(node.values, item, depth + 1)] as const,
      );
      return Object.fromEntries(entries.filter(([, item]) => item !== nothing));
    }
    case "object":
      return salvageObject(node, value, depth);
    default:
      return node satisfies never;
  }
}

function salvageObject(node: ObjectNode, value: unknown, depth: number): unknown {
  if (!isMapping(value)) return depth < keptDepth ? salvageObject(node, {}, depth) : nothing;
  const entries: [string, unknown][] = [];
  for (const [name, field] of Object.entries(node.fields)) {
    const item = value[name] ?? undefined;
    let left = item === undefined ? nothing : salvageAt(field.node, item, depth + 1);
    if (left === nothing && field.default !== undefined) left = field.default;
    if (left === nothing && field.required) {
      if (depth >= keptDepth) return nothing;
      left = leastOf(field.node);
    }
    if (left !== nothing) entries.push([name, left]);
  }
  return Object.fromEntries(entries);
}

/** The value that says least. */
function leastOf(node: Node): unknown {
  switch (node.type) {
    case "string":
    case "intOrString":
      return "";
    case "enum":
      return node.values[0];
    case "integer":
    case "number":
      return node.minimum ?? 0;
    case "boolean":
      return false;
    case "list":
      return [];
    case "map":
    case "json":
      return {};
    case "object":
      return salvageObject(node, {}, 0);
    default:
      return node satisfies never;
  }
}
