// Conditions on metadata: what filters before this one left (a token's claims), or what the route carries
// (type.matcher.v3.MetadataMatcher).
import type { MetadataMatcher } from "@tulle/xds/envoy/type/matcher/v3/metadata_pb";
import type { ValueMatcher } from "@tulle/xds/envoy/type/matcher/v3/value_pb";
import { compileMetadataMatcher } from "../../../fields/matchers/metadata-matcher.ts";
import type { Place, Problems } from "../../../fields/problems.ts";
import type { StreamInfo } from "../../../http/stream-info.ts";
import { type AnchorSet, type Condition, type TextSource, never, textAnchorSets } from "./condition.ts";

export type MetadataOrigin = "dynamic" | "route";

const origins: Readonly<Record<MetadataOrigin, (info: StreamInfo) => Readonly<Record<string, unknown>> | undefined>> = {
  dynamic: (info) => info.dynamicMetadata,
  route: (info) => info.route?.metadata,
};

export function compileMetadataCondition(
  matcher: MetadataMatcher | undefined,
  origin: MetadataOrigin,
  place: Place,
  problems: Problems,
): Condition {
  if (matcher?.value === undefined) {
    problems.error(place, "filter, path and value are required");
    return never;
  }
  const compiled = compileMetadataMatcher(matcher, place, problems);
  if (compiled === undefined) return never;
  const { keys, read, matches } = compiled;
  const readOrigin = origins[origin];
  const source: TextSource = {
    key: `metadata:${origin}:${JSON.stringify([matcher.filter, ...keys])}`,
    read: (_request, info) => textsOf(read(readOrigin(info))),
  };
  const anchorSets = matcher.invert ? [] : anchorSetsOf(matcher.value, source);
  return {
    matches:
      origin === "route"
        ? (_request, info) => info.route !== undefined && matches(info.route.metadata)
        : (_request, info) => matches(info.dynamicMetadata),
    anchorSets,
  };
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
