// The fields of a schema by their paths, and values without one of them: for tests that take each field out once and
// look at what is different then. `[]` is any entry of a list, `{}` any of a map.
import type { Node } from "@tulle/config";

export type FieldPath = readonly string[];
type Step = string | number;
type Value = Readonly<Record<string, unknown>>;

/** All that are implemented, each as its steps; `at` stands before them. */
export function fieldsBelow(node: Node, at: FieldPath): readonly FieldPath[] {
  if (node.type === "list") return fieldsBelow(node.items, [...at, "[]"]);
  if (node.type === "map") return fieldsBelow(node.values, [...at, "{}"]);
  if (node.type !== "object") return [];
  return Object.entries(node.fields).flatMap(([name, field]) =>
    field.status === "implemented" ? [[...at, name], ...fieldsBelow(field.node, [...at, name])] : [],
  );
}

/** Where in a value the field stands. */
export function placesOf(value: unknown, [step, ...rest]: FieldPath): readonly (readonly Step[])[] {
  if (step === undefined) return value === undefined ? [] : [[]];
  if (typeof value !== "object" || value === null) return [];
  const keys = step === "[]" ? [...(value as unknown[]).keys()] : step === "{}" ? Object.keys(value) : [step];
  return keys.flatMap((key) => placesOf((value as Value)[key], rest).map((place) => [key, ...place]));
}

export function withoutPlace(value: unknown, [step, ...rest]: readonly Step[]): unknown {
  if (Array.isArray(value)) {
    return value.map((each: unknown, index) => (index === step ? withoutPlace(each, rest) : each));
  }
  const { [String(step)]: inner, ...others } = value as Value;
  return rest.length === 0 ? others : { ...(value as Value), [String(step)]: withoutPlace(inner, rest) };
}

/** @throws {Error} where the field stands nowhere */
export function withoutField(value: unknown, field: FieldPath): unknown {
  const places = placesOf(value, field);
  if (places.length === 0) throw new Error(`${field.join(".")} stands nowhere`);
  return places.reduce(withoutPlace, value);
}
