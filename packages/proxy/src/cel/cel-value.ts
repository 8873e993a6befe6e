// What an expression of CEL comes to (github.com/google/cel-spec), as far as conditions on one request need it.

/** Headers, by name in any case; a message or a map of them. */
export interface CelHeaders {
  readonly get: (name: string) => string | undefined;
}

/**
 * Whole numbers and others are one kind, since nothing here computes. `undefined` is CEL's error: no such field, no
 * such overload.
 */
export type CelValue = string | number | boolean | null | readonly CelValue[] | CelHeaders | undefined;

export function isList(value: CelValue): value is readonly CelValue[] {
  return Array.isArray(value);
}

export function isHeaders(value: CelValue): value is CelHeaders {
  return typeof value === "object" && value !== null && !isList(value);
}

/** Undefined where there is nothing to compare; two maps are not compared here. */
export function areEqual(left: CelValue, right: CelValue): boolean | undefined {
  if (left === undefined || right === undefined) return undefined;
  if (isHeaders(left) && isHeaders(right)) return undefined;
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
