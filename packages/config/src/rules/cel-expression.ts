/**
 * Expressions of CEL in resources: what a proxy would refuse is known before it is sent, because a proxy refuses the
 * whole listener for it.
 */
import { parseExpression, type CelTree } from "@tulle/telemetry/cel";
import { nearestName } from "../findings/nearest-name.ts";
import { attributeProblem } from "./cel-attributes.ts";

/** Functions and macros of CEL's standard definitions (cel-spec: langdef, "Standard Definitions"). */
const functions: ReadonlySet<string> = new Set(
  `all bool bytes contains double duration dyn endsWith exists exists_one filter getDate getDayOfMonth getDayOfWeek
  getDayOfYear getFullYear getHours getMilliseconds getMinutes getMonth getSeconds has int map matches size startsWith
  string timestamp type uint`.split(/\s+/),
);

/** What is wrong with the expression, after the word "expression"; undefined when it can be evaluated. */
export function expressionProblem(text: string): string | undefined {
  const parsed = parseExpression(text);
  if (!parsed.ok) return parsed.reason;
  const unknown = functionsOf(parsed.tree).find((name) => !functions.has(name));
  if (unknown === undefined) return attributeProblem(parsed.tree);
  const nearest = nearestName(unknown, [...functions]);
  return `calls ${unknown}, which is no function${nearest === undefined ? "" : `; did you mean ${nearest}?`}`;
}

function functionsOf(tree: CelTree): readonly string[] {
  switch (tree.type) {
    case "literal":
    case "bytes":
    case "name":
      return [];
    case "select":
    case "not":
    case "negate":
      return functionsOf(tree.of);
    case "index":
      return [tree.of, tree.key].flatMap(functionsOf);
    case "list":
      return tree.elements.flatMap(functionsOf);
    case "map":
      return tree.entries.flatMap(({ key, value }) => [key, value].flatMap(functionsOf));
    case "message":
      return tree.entries.flatMap(({ value }) => functionsOf(value));
    case "binary":
      return [tree.left, tree.right].flatMap(functionsOf);
    case "conditional":
      return [tree.condition, tree.whenTrue, tree.whenFalse].flatMap(functionsOf);
    case "call":
      return [tree.name, ...[...(tree.of === undefined ? [] : [tree.of]), ...tree.inputs].flatMap(functionsOf)];
  }
}
