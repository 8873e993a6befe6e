// What an expression of CEL comes to (github.com/google/cel-spec), as far as conditions on one request need it.

/** A message or a map: of headers, by name in any case, or of metadata. */
export interface CelMap {
  readonly get: (name: string) => CelValue;
}

/**
 * Whole numbers and others are one kind, since nothing here divides. `undefined` is CEL's error: no such field, no such
 * overload.
 */
export type CelValue = string | number | boolean | null | readonly CelValue[] | CelMap | undefined;

export function isList(value: CelValue): value is readonly CelValue[] {
  return Array.isArray(value);
}

export function isMap(value: CelValue): value is CelMap {
  return typeof value === "object" && value !== null && !isList(value);
}

/** Undefined where there is nothing to compare; two maps are not compared here. */
export function areEqual(left: CelValue, right: CelValue): boolean | undefined {
  if (left === undefined || right === undefined) return undefined;
  if (isMap(left) && isMap(right)) return undefined;
  if (isList(left) && isList(right)) {
    return left.length === right.length && left.every((element, index) => areEqual(element, right[index]) === true);
  }
  // Values of different kinds are different (cel-spec: "Equality").
  return left === right;
}

/** Below 0, 0 or above; undefined where CEL has no order. */
export function order(left: CelValue, right: CelValue): number | undefined {
  if (typeof left === "string" && typeof right === "string") {
    return Buffer.compare(Buffer.from(left), Buffer.from(right));
  }
  if (typeof left === "number" && typeof right === "number") return left - right;
  if (typeof left === "boolean" && typeof right === "boolean") return Number(left) - Number(right);
  return undefined;
}

/** Plain JSON, such as metadata. */
export function celValue(json: unknown): CelValue {
  if (json === null || typeof json === "string" || typeof json === "number" || typeof json === "boolean") return json;
  if (Array.isArray(json)) return json.map((element) => celValue(element));
  if (typeof json !== "object") return undefined;
  return { get: (name) => (Object.hasOwn(json, name) ? celValue((json as Record<string, unknown>)[name]) : undefined) };
}

/** As Envoy prints a value into a label; undefined for what has no text. */
export function celText(value: CelValue): string | undefined {
  if (typeof value === "string") return value;
  return typeof value === "number" || typeof value === "boolean" ? String(value) : undefined;
}
