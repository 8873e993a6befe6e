// Regular expressions of configuration: RE2 semantics, linear time, whole-string matches as Envoy's `safe_regex`.
// Shapes that need no automaton (literals, prefixes, alternatives of literals) become plain string operations, which
// are ten times faster than re2js.
import type { RE2JS } from "re2js";
import type { RegexMatchAndSubstitute, RegexMatcher } from "@tulle/xds/envoy/type/matcher/v3/regex_pb";
import { checkHeaderText } from "../check-header-text.ts";
import type { Place, Problems } from "../problems.ts";
import { compileRe2 } from "../../cel/re2.ts";

export type TextMatch = (text: string) => boolean;

const metaCharacters = /[\\^$.|?*+()[\]{}]/;

function isLiteral(text: string): boolean {
  return !metaCharacters.test(text);
}

/** The matcher without an automaton, or undefined when the pattern needs one. `.` is anything but a line feed (RE2). */
function plainMatch(pattern: string): TextMatch | undefined {
  if (isLiteral(pattern)) return (text) => text === pattern;
  const open = pattern.startsWith(".*");
  const body = open ? pattern.slice(2) : pattern;
  if (open && body === "") return (text) => !text.includes("\n");
  const close = body.endsWith(".*");
  const literal = close ? body.slice(0, -2) : body;
  if ((open || close) && isLiteral(literal)) return plainEnds(literal, open, close);
  const alternatives = /^\(?([^()]*)\)?$/.exec(pattern)?.[1]?.split("|");
  if (alternatives === undefined || !alternatives.every(isLiteral)) return undefined;
  if (pattern.startsWith("(") !== pattern.endsWith(")")) return undefined;
  const set = new Set(alternatives);
  return (text) => set.has(text);
}

function plainEnds(literal: string, open: boolean, close: boolean): TextMatch {
  if (open && close) return (text) => text.includes(literal) && !text.includes("\n");
  if (open) return (text) => text.endsWith(literal) && !text.includes("\n");
  return (text) => text.startsWith(literal) && !text.includes("\n");
}

function parse(pattern: string, place: Place, problems: Problems): RE2JS | undefined {
  try {
    return compileRe2(pattern);
  } catch (error) {
    problems.error(place, `invalid regex '${pattern}': ${error instanceof Error ? error.message : String(error)}`);
    return undefined;
  }
}

/** Matches the whole text, in linear time whatever the pattern. */
export function compileRegex(matcher: RegexMatcher, place: Place, problems: Problems): TextMatch {
  const plain = plainMatch(matcher.regex);
  if (plain !== undefined) return plain;
  const regex = parse(matcher.regex, place.field("regex"), problems);
  return regex === undefined ? () => false : (text) => regex.matches(text);
}

/** RE2's rewrite syntax: text, and numbers of groups for `\\0` … `\\9`. */
function parseRewrite(substitution: string): readonly (string | number)[] {
  return substitution
    .split(/(\\\d|\\\\)/)
    .filter((part) => part !== "")
    .map((part) => (/^\\\d$/.test(part) ? Number(part[1]) : part === "\\\\" ? "\\" : part));
}

/** Replaces every match in the text, as `RE2::GlobalReplace` does. */
export function compileSubstitution(
  rewrite: RegexMatchAndSubstitute,
  place: Place,
  problems: Problems,
): (text: string) => string {
  const pattern = rewrite.pattern;
  if (pattern === undefined || pattern.regex === "") {
    problems.error(place.field("pattern"), "a pattern is required");
    return (text) => text;
  }
  const regex = parse(pattern.regex, place.field("pattern").field("regex"), problems);
  if (regex === undefined) return (text) => text;
  const rewriteParts = parseRewrite(checkHeaderText(rewrite.substitution, place.field("substitution"), problems));
  const highest = Math.max(0, ...rewriteParts.filter((part) => typeof part === "number"));
  if (highest > regex.groupCount()) {
    problems.error(place.field("substitution"), `group ${highest} is not in the pattern '${pattern.regex}'`);
    return (text) => text;
  }
  return (text) => {
    const matcher = regex.matcher(text);
    let result = "";
    let rest = 0;
    while (matcher.find()) {
      result += text.slice(rest, matcher.start());
      for (const part of rewriteParts) result += typeof part === "number" ? (matcher.group(part) ?? "") : part;
      rest = matcher.end();
    }
    return result + text.slice(rest);
  };
}
