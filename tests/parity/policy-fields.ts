// The fields that a kind of policy has, and those that a table of policies uses, as dotted paths: a table that claims
// to show every field is held against the kind's own schema.
import assert from "node:assert/strict";
import { type Kind, kindDefinitions } from "@tulle/config";

type Node = (typeof kindDefinitions)[Kind]["schema"]["node"];

/** All of `spec` that does something: `rules.from.source.principals`, without the objects on the way. */
export function implementedFields(kind: Kind): ReadonlySet<string> {
  return new Set(leavesOf(nodeAt(kind, [])));
}

/** The words of a field's own description of what it takes, as `source.ip, remote.ip`. */
export function namedValues(kind: Kind, path: readonly string[]): readonly string[] {
  const node = nodeAt(kind, path);
  assert.ok(node.type === "string" && node.format !== undefined);
  return node.format.description.split(", ");
}

export function usedFields(value: unknown, path: readonly string[] = []): readonly string[] {
  if (Array.isArray(value)) return value.flatMap((each) => usedFields(each, path));
  const isMap = path.at(-1) === "matchLabels";
  if (typeof value !== "object" || value === null || isMap) return [path.join(".")];
  return Object.entries(value).flatMap(([name, inner]) => usedFields(inner, [...path, name]));
}

function nodeAt(kind: Kind, path: readonly string[]): Node {
  let node: Node = kindDefinitions[kind].schema.node;
  for (const name of ["spec", ...path]) {
    const holder = node.type === "list" ? node.items : node;
    assert.ok(holder.type === "object" && holder.fields[name] !== undefined, name);
    node = holder.fields[name].node;
  }
  return node;
}

function leavesOf(node: Node, path: readonly string[] = []): readonly string[] {
  if (node.type === "list") return leavesOf(node.items, path);
  if (node.type !== "object") return [path.join(".")];
  return Object.entries(node.fields)
    .filter(([, field]) => field.status === "implemented")
    .flatMap(([name, field]) => leavesOf(field.node, [...path, name]));
}
