// Conditions on metadata: what filters before this one left (a token's claims), or what the route carries
// (type.matcher.v3.MetadataMatcher).
import type { MetadataMatcher } from "@tulle/xds/envoy/type/matcher/v3/metadata_pb";
import type { ValueMatcher } from "@tulle/xds/envoy/type/matcher/v3/value_pb";
import { compileStringMatcher } from "../../compile/matchers/string-matcher.ts";
import type { Place, Problems } from "../../compile/problems.ts";
import type { StreamInfo } from "../../http/stream-info.ts";
import { type AnchorSet, type Condition, type TextSource, never, textAnchorSets } from "./condition.ts";

export type MetadataOrigin = "dynamic" | "route";

/** A value of JSON; undefined = there is none at that path. */
type ValueTest = (value: unknown) => boolean;

const origins: Readonly<Record<MetadataOrigin, (info: StreamInfo) => Readonly<Record<string, unknown>> | undefined>> = {
  dynamic: (info) => info.dynamicMetadata,
  route: (info) => info.route?.metadata,
};

export function compileMetadataMatcher(
  matcher: MetadataMatcher | undefined,
  origin: MetadataOrigin,
  place: Place,
  problems: Problems,
): Condition {
  if (matcher === undefined || matcher.filter === "" || matcher.path.length === 0 || matcher.value === undefined) {
    problems.error(place, "filter, path and value are required");
    return never;
  }
  const keys = matcher.path.map((part) => part.segment.value ?? "");
  if (keys.includes("")) problems.error(place.field("path"), "each segment needs a key");
  const readOrigin = origins[origin];
  const { filter, invert } = matcher;
  const read = (info: StreamInfo): unknown => valueAt(readOrigin(info)?.[filter], keys);
  const test = compileValueMatcher(matcher.value, place.field("value"), problems);
  const source: TextSource = {
    key: `metadata:${origin}:${JSON.stringify([filter, ...keys])}`,
    read: (_request, info) => textsOf(read(info)),
  };
  const anchorSets = invert ? [] : anchorSetsOf(matcher.value, source);
  const matches: Condition["matches"] =
    origin === "route"
      ? (_request, info) => info.route !== undefined && test(read(info)) !== invert
      : (_request, info) => test(read(info)) !== invert;
  return { matches, anchorSets };
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

function textsOf(value: unknown): string | readonly string[] | undefined {
  if (typeof value === "string") return value;
  return Array.isArray(value) ? value.filter((element): element is string => typeof element === "string") : undefined;
}

function anchorSetsOf(matcher: ValueMatcher, source: TextSource): readonly AnchorSet[] {
  const pattern = matcher.matchPattern;
  if (pattern.case === "stringMatch") return textAnchorSets(source, pattern.value);
  if (pattern.case === "listMatch") {
    const inner = pattern.value.matchPattern.value;
    // A list within a list has no texts of its own.
    return inner?.matchPattern.case === "stringMatch" ? anchorSetsOf(inner, source) : [];
  }
  if (pattern.case !== "orMatch") return [];
  const sets = pattern.value.valueMatchers.map((inner) => anchorSetsOf(inner, source)[0]);
  return sets.every((set) => set !== undefined) ? [sets.flat()] : [];
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
