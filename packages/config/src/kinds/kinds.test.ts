/** The kinds of Istio's know every field of Istio's API, and the kinds go by all their names. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";
import type { Node } from "../schema/schema.ts";
import { findKind, isKind, kindDefinitions, kinds } from "./kinds.ts";
import { unreadKinds } from "./unread-kinds.ts";

/** Lines of `kind path type`, from Istio's CRDs. */
const istioFields = readFileSync(path.join(import.meta.dirname, "istio-api-fields.txt"), "utf8")
  .split("\n")
  .filter((line) => line !== "" && !line.startsWith("#"));

/** Texts that have few possible values. */
const stricter = new Set(["Gateway spec.servers[].port.protocol"]);

const typeNames: Readonly<Record<string, Node["type"]>> = { array: "list", object: "object" };

/** What the schema does not take of the field; undefined when it takes all. */
function problemOf(kind: string, at: string, type: string): string | undefined {
  if (!isKind(kind)) return Object.hasOwn(unreadKinds, kind) ? undefined : "the kind is unknown";
  let node: Node = kindDefinitions[kind].schema.node;
  for (const step of at.split(/\.|(?=\[\])|(?=\{\})/)) {
    if (step === "[]" && node.type === "list") node = node.items;
    else if (step === "{}" && node.type === "map") node = node.values;
    else if (node.type === "object" && Object.hasOwn(node.fields, step)) node = node.fields[step]!.node;
    else return `${step} is unknown`;
  }
  if (!type.startsWith("enum:")) {
    const isMap = node.type === "map" && type === "object";
    const isAsWanted = isMap || node.type === (typeNames[type] ?? type) || stricter.has(`${kind} ${at}`);
    return isAsWanted ? undefined : `${type} is wanted, not ${node.type}`;
  }
  const taken = node.type === "enum" ? node.values : [];
  const missing = type
    .slice("enum:".length)
    .split("|")
    .filter((value) => !taken.includes(value));
  return missing.length === 0 ? undefined : `${missing.join(", ")} is not taken`;
}

test("every field of Istio's API is known, with all values of enumerations", () => {
  assert.ok(istioFields.length > 900, `${istioFields.length} fields`);
  const problems = istioFields.flatMap((line) => {
    const [kind = "", at = "", type = ""] = line.split(" ");
    const problem = problemOf(kind, at, type);
    return problem === undefined ? [] : [`${kind} ${at}: ${problem}`];
  });
  assert.deepEqual(problems, []);
});

test("kinds go by kind, plural and short name", () => {
  for (const kind of kinds) {
    const { plural, shortNames } = kindDefinitions[kind];
    for (const name of [kind, kind.toLowerCase(), plural, ...shortNames]) assert.equal(findKind(name), kind, name);
  }
  assert.equal(findKind("x"), undefined);
  const names = kinds.flatMap((kind) => [kindDefinitions[kind].plural, ...kindDefinitions[kind].shortNames]);
  assert.equal(new Set(names).size, names.length);
});
