// Envoy's MetadataMatcher as a test of what filters have left for a request, or of what a route carries
// (type.matcher.v3.MetadataMatcher).
import type { MetadataMatcher } from "@tulle/xds/envoy/type/matcher/v3/metadata_pb";
import type { ValueMatcher } from "@tulle/xds/envoy/type/matcher/v3/value_pb";
import type { Place, Problems } from "../problems.ts";
import { compileStringMatcher } from "./string-matcher.ts";

/** Plain JSON by filter name. */
export type Metadata = Readonly<Record<string, unknown>>;

export interface CompiledMetadataMatcher {
  /** `metadata` undefined: nobody has left any. */
  readonly matches: (metadata: Metadata | undefined) => boolean;
  /** What is compared; undefined where there is nothing. */
  readonly read: (metadata: Metadata | undefined) => unknown;
  readonly keys: readonly string[];
}

/** A value of JSON; undefined = there is none at that path. */
type ValueTest = (value: unknown) => boolean;

/** Undefined when the message says too little, which is told. */
export function compileMetadataMatcher(
  { filter, path, value, invert }: MetadataMatcher,
  place: Place,
  problems: Problems,
): CompiledMetadataMatcher | undefined {
  if (filter === "" || path.length === 0 || value === undefined) {
    problems.error(place, "filter, path and value are required");
    return undefined;
  }
  const keys = path.map((part) => part.segment.value ?? "");
  if (keys.includes("")) problems.error(place.field("path"), "each segment needs a key");
  const read = (metadata: Metadata | undefined): unknown => valueAt(metadata?.[filter], keys);
  const test = compileValueMatcher(value, place.field("value"), problems);
  return { matches: (metadata) => test(read(metadata)) !== invert, read, keys };
}

function valueAt(root: unknown, keys: readonly string[]): unknown {
  let value = root;
  for (const key of keys) {
    if (typeof value !== "object" || value === null || Array.isArray(value) || !Object.hasOwn(value, key))
      return undefined;
    value = (value as Readonly<Record<string, unknown>>)[key];
  }
  return value;
}

function compileValueMatcher(matcher: ValueMatcher, place: Place, problems: Problems): ValueTest {
  const pattern = matcher.matchPattern;
  switch (pattern.case) {
    case "nullMatch":
      return (value) => value === null;
    case "doubleMatch":
      return compileDouble(pattern.value.matchPattern, place, problems);
    case "stringMatch": {
      const test = compileStringMatcher(pattern.value, place.field("string_match"), problems);
      return (value) => typeof value === "string" && test(value);
    }
    case "boolMatch": {
      const wanted = pattern.value;
      return (value) => value === wanted;
    }
    case "presentMatch": {
      const wanted = pattern.value;
      return (value) => wanted && value !== undefined;
    }
    case "listMatch": {
      const inner = pattern.value.matchPattern;
      if (inner.case === undefined) return required(place.field("list_match"), problems);
      const test = compileValueMatcher(inner.value, place.field("list_match").field("one_of"), problems);
      return (value) => Array.isArray(value) && value.some(test);
    }
    case "orMatch": {
      const tests = pattern.value.valueMatchers.map((inner, index) =>
        compileValueMatcher(inner, place.field("or_match").field("value_matchers", index), problems),
      );
      if (tests.length < 2) problems.error(place.field("or_match"), "value_matchers must contain at least 2 items");
      return (value) => tests.some((test) => test(value));
    }
    case undefined:
      return required(place, problems);
  }
}

function required(place: Place, problems: Problems): ValueTest {
  problems.error(place.field("match_pattern"), "is required");
  return () => false;
}

function compileDouble(
  pattern: Extract<ValueMatcher["matchPattern"], { case: "doubleMatch" }>["value"]["matchPattern"],
  place: Place,
  problems: Problems,
): ValueTest {
  if (pattern.case === "exact") return (value) => value === pattern.value;
  if (pattern.case === "range") {
    const { start, end } = pattern.value;
    return (value) => typeof value === "number" && value >= start && value < end;
  }
  return required(place.field("double_match"), problems);
}
