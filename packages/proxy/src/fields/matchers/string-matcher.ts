// Envoy's StringMatcher as a function on a text (type.matcher.v3.StringMatcher).
import type { StringMatcher } from "@tulle/xds/envoy/type/matcher/v3/string_pb";
import type { Place, Problems } from "../problems.ts";
import { type TextMatch, compileRegex } from "./regex.ts";

export function compileStringMatcher(matcher: StringMatcher, place: Place, problems: Problems): TextMatch {
  const pattern = matcher.matchPattern;
  switch (pattern.case) {
    case "exact":
      return matcher.ignoreCase ? ignoreCase(pattern.value, (text, value) => text === value) : exact(pattern.value);
    case "prefix":
      return affix(pattern.value, matcher.ignoreCase, "startsWith", place.field("prefix"), problems);
    case "suffix":
      return affix(pattern.value, matcher.ignoreCase, "endsWith", place.field("suffix"), problems);
    case "contains":
      return affix(pattern.value, matcher.ignoreCase, "includes", place.field("contains"), problems);
    case "safeRegex":
      if (matcher.ignoreCase) problems.error(place.field("ignore_case"), "ignore_case has no effect for safe_regex");
      return compileRegex(pattern.value, place.field("safe_regex"), problems);
    case "custom":
      problems.error(place.field("custom"), "this field is not supported");
      return () => false;
    case undefined:
      problems.error(place.field("match_pattern"), "is required");
      return () => false;
  }
}

function exact(value: string): TextMatch {
  return (text) => text === value;
}

function ignoreCase(value: string, test: (text: string, value: string) => boolean): TextMatch {
  const lower = value.toLowerCase();
  return (text) => test(text.toLowerCase(), lower);
}

function affix(
  value: string,
  ignoresCase: boolean,
  operation: "startsWith" | "endsWith" | "includes",
  place: Place,
  problems: Problems,
): TextMatch {
  // Envoy's validation: an empty affix would match everything, which `present_match` says openly.
  if (value === "") problems.error(place, "value length must be at least 1 characters");
  if (ignoresCase) return ignoreCase(value, (text, lower) => text[operation](lower));
  return (text) => text[operation](value);
}
