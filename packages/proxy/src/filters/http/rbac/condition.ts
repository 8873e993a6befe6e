// A condition on a request, and what must be true of a request that meets it: the anchors, by which an index finds the
// few conditions of many that a request can meet at all.
import type { StringMatcher } from "@tulle/xds/envoy/type/matcher/v3/string_pb";
import { compileStringMatcher } from "../../../fields/matchers/string-matcher.ts";
import type { Place, Problems } from "../../../fields/problems.ts";
import type { RequestHead } from "../../../http/message.ts";
import type { StreamInfo } from "../../../http/stream-info.ts";
import { regexAnchorSets } from "./regex-anchors.ts";

export type RequestTest = (request: RequestHead, info: StreamInfo) => boolean;

/** A text, or several, of a request. Two sources with one key read the same. */
export interface TextSource {
  readonly key: string;
  read(request: RequestHead, info: StreamInfo): string | readonly string[] | undefined;
}

/** An address of a request as `ip:port`. */
export interface AddressSource {
  readonly key: string;
  read(info: StreamInfo): string;
}

export type Anchor =
  | {
      readonly kind: "exact" | "prefix" | "suffix";
      readonly source: TextSource;
      /** In lower case where case does not matter. */
      readonly text: string;
      readonly ignoresCase: boolean;
    }
  | { readonly kind: "ipv4"; readonly source: AddressSource; readonly network: number; readonly prefixLength: number };

/** A request that meets the condition is at one of these anchors, at least. */
export type AnchorSet = readonly Anchor[];

export interface Condition {
  readonly matches: RequestTest;
  /** Each set holds by itself; none = nothing cheap can be said of the requests that meet the condition. */
  readonly anchorSets: readonly AnchorSet[];
}

export const always: Condition = { matches: () => true, anchorSets: [] };
export const never: Condition = { matches: () => false, anchorSets: [] };

export function not(condition: Condition): Condition {
  const { matches } = condition;
  return { matches: (request, info) => !matches(request, info), anchorSets: [] };
}

export function allOf(conditions: readonly Condition[]): Condition {
  if (conditions.length === 1) return conditions[0]!;
  const tests = conditions.map(({ matches }) => matches);
  const anchorSets = conditions.flatMap((condition) => condition.anchorSets);
  const [first, second] = tests;
  if (tests.length === 2) {
    return { matches: (request, info) => first!(request, info) && second!(request, info), anchorSets };
  }
  return {
    matches: (request, info) => {
      for (const test of tests) if (!test(request, info)) return false;
      return true;
    },
    anchorSets,
  };
}

/** There is a text at all, whatever it is: a thousand conditions on a header cost nothing to who does not send it. */
export function presence(source: TextSource): AnchorSet {
  return [{ kind: "prefix", source, text: "", ignoresCase: false }];
}

/** What the matcher says of the source's text; no more than that there is one, where it may match anywhere in it. */
export function textAnchorSets(source: TextSource, matcher: StringMatcher): readonly AnchorSet[] {
  const pattern = matcher.matchPattern;
  const { ignoreCase: ignoresCase } = matcher;
  switch (pattern.case) {
    case "exact":
    case "prefix":
    case "suffix": {
      const text = ignoresCase ? pattern.value.toLowerCase() : pattern.value;
      return [[{ kind: pattern.case, source, text, ignoresCase }]];
    }
    case "safeRegex":
      return [...regexAnchorSets(source, pattern.value.regex), presence(source)];
    default:
      return [presence(source)];
  }
}

/** Any of the source's texts matches; a source without one never does. */
export function textCondition(source: TextSource, matcher: StringMatcher, place: Place, problems: Problems): Condition {
  const test = compileStringMatcher(matcher, place, problems);
  return {
    matches: (request, info) => {
      const value = source.read(request, info);
      if (value === undefined) return false;
      return typeof value === "string" ? test(value) : value.some(test);
    },
    anchorSets: textAnchorSets(source, matcher),
  };
}
