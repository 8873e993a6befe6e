// Envoy's HeaderMatcher as a function on a request or response head (config.route.v3.HeaderMatcher).
import type { HeaderMatcher } from "@tulle/xds/envoy/config/route/v3/route_components_pb";
import type { RequestHead, ResponseHead } from "../../http/message.ts";
import { requestHeader, responseHeader } from "../../http/read-header.ts";
import type { Place, Problems } from "../problems.ts";
import { type TextMatch, compileRegex } from "./regex.ts";
import { compileStringMatcher } from "./string-matcher.ts";

export type RequestMatch = (request: RequestHead) => boolean;
export type ResponseMatch = (response: ResponseHead) => boolean;

export function compileRequestHeaderMatcher(matcher: HeaderMatcher, place: Place, problems: Problems): RequestMatch {
  return compileHeaderMatcher(matcher, requestHeader(matcher.name), place, problems);
}

export function compileResponseHeaderMatcher(matcher: HeaderMatcher, place: Place, problems: Problems): ResponseMatch {
  return compileHeaderMatcher(matcher, responseHeader(matcher.name), place, problems);
}

/** The matcher on whatever `read` takes a value from; undefined = the header is not there. */
export function compileHeaderMatcher<Head>(
  matcher: HeaderMatcher,
  read: (head: Head) => string | undefined,
  place: Place,
  problems: Problems,
): (head: Head) => boolean {
  if (matcher.name === "") problems.error(place.field("name"), "value length must be at least 1 characters");
  const invert = matcher.invertMatch;
  const specifier = matcher.headerMatchSpecifier;
  if (specifier.case === "presentMatch" || specifier.case === undefined) {
    const wanted = (specifier.case === undefined || specifier.value) !== invert;
    if (matcher.treatMissingHeaderAsEmpty) return () => wanted;
    return (head) => (read(head) !== undefined) === wanted;
  }
  const test = compileValueTest(specifier, place, problems);
  if (matcher.treatMissingHeaderAsEmpty) return (head) => test(read(head) ?? "") !== invert;
  // A missing header matches no rule on its value, inverted or not (Envoy: HeaderUtility::matchHeaders).
  return (head) => {
    const value = read(head);
    return value !== undefined && test(value) !== invert;
  };
}

function compileValueTest(
  specifier: Exclude<HeaderMatcher["headerMatchSpecifier"], { case: "presentMatch" | undefined }>,
  place: Place,
  problems: Problems,
): TextMatch {
  switch (specifier.case) {
    case "exactMatch": {
      const { value } = specifier;
      return (text) => text === value;
    }
    case "prefixMatch": {
      const { value } = specifier;
      if (value === "") problems.error(place.field("prefix_match"), "value length must be at least 1 characters");
      return (text) => text.startsWith(value);
    }
    case "suffixMatch": {
      const { value } = specifier;
      if (value === "") problems.error(place.field("suffix_match"), "value length must be at least 1 characters");
      return (text) => text.endsWith(value);
    }
    case "containsMatch": {
      const { value } = specifier;
      if (value === "") problems.error(place.field("contains_match"), "value length must be at least 1 characters");
      return (text) => text.includes(value);
    }
    case "safeRegexMatch":
      return compileRegex(specifier.value, place.field("safe_regex_match"), problems);
    case "stringMatch":
      return compileStringMatcher(specifier.value, place.field("string_match"), problems);
    case "rangeMatch":
      return compileRange(specifier.value.start, specifier.value.end);
  }
}

/** Half-open interval; the whole value must be a decimal integer. */
function compileRange(start: bigint, end: bigint): TextMatch {
  return (text) => {
    if (!/^[+-]?\d{1,19}$/.test(text)) return false;
    const value = BigInt(text.startsWith("+") ? text.slice(1) : text);
    return value >= start && value < end;
  };
}
