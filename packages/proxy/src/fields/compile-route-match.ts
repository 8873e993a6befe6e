// Conditions of a route as one function on the request (config.route.v3.RouteMatch). Matching allocates nothing: paths
// are compared in place, query strings are parsed only by routes that ask for parameters.
import type { QueryParameterMatcher, RouteMatch } from "@tulle/xds/envoy/config/route/v3/route_components_pb";
import type { RequestHead } from "../http/message.ts";
import { compileRequestHeaderMatcher } from "./matchers/header-matcher.ts";
import { fractionOf } from "./matchers/fraction.ts";
import { type Metadata, compileMetadataMatcher } from "./matchers/metadata-matcher.ts";
import { compileRegex } from "./matchers/regex.ts";
import { compileStringMatcher } from "./matchers/string-matcher.ts";
import type { Place, Problems } from "./problems.ts";

/** One number in [0, 1) a request, shared by everything that its routing decides by chance, as in Envoy. */
export interface RandomDraw {
  value(): number;
}

/** What else than the request decides. */
export interface MatchContext extends RandomDraw {
  /** What filters have left so far; when a route is chosen for the first time there is none. */
  readonly dynamicMetadata: Metadata | undefined;
}

export type RouteCondition = (request: RequestHead, context: MatchContext) => boolean;

/** Requests that a route can match at all: those of one path, or those whose first path segment is this one. */
export type PathIndex = { readonly kind: "exact" | "segment"; readonly text: string };

export interface CompiledRouteMatch {
  readonly matches: RouteCondition;
  /** Length of the matched prefix, which prefix_rewrite replaces; undefined = the whole path is replaced. */
  readonly prefixLength: number | undefined;
}

export function compileRouteMatch(message: RouteMatch, place: Place, problems: Problems): CompiledRouteMatch {
  const path = compilePathMatch(message, place, problems);
  const conditions: RouteCondition[] = [path.matches];
  for (const [index, header] of message.headers.entries()) {
    conditions.push(compileRequestHeaderMatcher(header, place.field("headers", index), problems));
  }
  if (message.queryParameters.length > 0) {
    conditions.push(compileQueryParameters(message.queryParameters, place, problems));
  }
  for (const [index, matcher] of message.dynamicMetadata.entries()) {
    const compiled = compileMetadataMatcher(matcher, place.field("dynamic_metadata", index), problems);
    if (compiled !== undefined) conditions.push((_request, context) => compiled.matches(context.dynamicMetadata));
  }
  const fraction = message.runtimeFraction?.defaultValue;
  if (fraction !== undefined) {
    const share = fractionOf(fraction);
    conditions.push((_request, context) => context.value() < share);
  }
  return { matches: allOf(conditions), prefixLength: path.prefixLength };
}

function allOf(conditions: readonly RouteCondition[]): RouteCondition {
  if (conditions.length === 1) return conditions[0]!;
  const [first, second] = conditions;
  if (conditions.length === 2) return (request, context) => first!(request, context) && second!(request, context);
  return (request, context) => {
    for (const condition of conditions) if (!condition(request, context)) return false;
    return true;
  };
}

/** True where the path part of a target ends: its end, a query, or a fragment. */
function endsPath(path: string, index: number): boolean {
  if (index === path.length) return true;
  const code = path.charCodeAt(index);
  return code === 0x3f || code === 0x23;
}

export function pathWithoutQuery(path: string): string {
  for (let index = 0; index < path.length; index += 1) if (endsPath(path, index)) return path.slice(0, index);
  return path;
}

/** `/a` of `/a`, `/a/b` and `/a?b`. */
export function firstSegment(path: string): string {
  for (let index = 1; index < path.length; index += 1) {
    if (path.charCodeAt(index) === 0x2f || endsPath(path, index)) return path.slice(0, index);
  }
  return path;
}

/** Undefined: any path may match. */
export function pathIndexOf(message: RouteMatch): PathIndex | undefined {
  if (message.caseSensitive === false) return undefined;
  const specifier = message.pathSpecifier;
  if (specifier.case === "path") return { kind: "exact", text: specifier.value };
  if (specifier.case === "pathSeparatedPrefix") return { kind: "segment", text: firstSegment(specifier.value) };
  if (specifier.case !== "prefix") return undefined;
  const segment = firstSegment(specifier.value);
  // `/a` is a prefix of `/ab` too; only a prefix that goes on after its first segment fixes it.
  return segment === specifier.value || segment === "" ? undefined : { kind: "segment", text: segment };
}

function compilePathMatch(message: RouteMatch, place: Place, problems: Problems): CompiledRouteMatch {
  const ignoresCase = message.caseSensitive === false;
  const specifier = message.pathSpecifier;
  switch (specifier.case) {
    case "prefix":
      return { matches: prefixCondition(specifier.value, ignoresCase), prefixLength: specifier.value.length };
    case "path":
      return { matches: exactCondition(specifier.value, ignoresCase), prefixLength: undefined };
    case "pathSeparatedPrefix": {
      const at = place.field("path_separated_prefix");
      if (!/^\/?[^?#]*[^?#/]$/.test(specifier.value)) problems.error(at, "value does not match '^[^?#]+[^?#/]$'");
      return {
        matches: separatedPrefixCondition(specifier.value, ignoresCase),
        prefixLength: specifier.value.length,
      };
    }
    case "safeRegex": {
      if (ignoresCase) problems.error(place.field("case_sensitive"), "has no effect on safe_regex");
      const test = compileRegex(specifier.value, place.field("safe_regex"), problems);
      return {
        matches: (request) => request.path !== "" && test(pathWithoutQuery(request.path)),
        prefixLength: undefined,
      };
    }
    case "connectMatcher":
      return { matches: (request) => request.method === "CONNECT", prefixLength: undefined };
    case "pathMatchPolicy":
      problems.error(place.field("path_match_policy"), "this field is not supported");
      return { matches: () => false, prefixLength: undefined };
    case undefined:
      problems.error(place, "path_specifier is required");
      return { matches: () => false, prefixLength: undefined };
  }
}

// An empty path is a CONNECT without one, which only connect_matcher takes.
function prefixCondition(prefix: string, ignoresCase: boolean): RouteCondition {
  if (/[?#]/.test(prefix)) return () => false;
  if (prefix === "/") return (request) => request.path.charCodeAt(0) === 0x2f;
  if (prefix === "") return (request) => request.path !== "";
  if (!ignoresCase) return (request) => request.path.startsWith(prefix);
  const lower = prefix.toLowerCase();
  return (request) => request.path.slice(0, lower.length).toLowerCase() === lower;
}

function exactCondition(path: string, ignoresCase: boolean): RouteCondition {
  if (!ignoresCase) {
    return (request) =>
      request.path === path || (request.path.startsWith(path) && path !== "" && endsPath(request.path, path.length));
  }
  const lower = path.toLowerCase();
  return (request) => pathWithoutQuery(request.path).toLowerCase() === lower;
}

function separatedPrefixCondition(prefix: string, ignoresCase: boolean): RouteCondition {
  const starts = prefixCondition(prefix, ignoresCase);
  return (request, context) =>
    starts(request, context) &&
    (endsPath(request.path, prefix.length) || request.path.charCodeAt(prefix.length) === 0x2f);
}

type Parameters = ReadonlyMap<string, string>;

/** Parameters as Envoy's router sees them: not decoded, the first of a name counts. */
function parseQuery(path: string): Parameters {
  const parameters = new Map<string, string>();
  const start = path.indexOf("?");
  if (start < 0) return parameters;
  const fragment = path.indexOf("#", start);
  for (const pair of path.slice(start + 1, fragment < 0 ? path.length : fragment).split("&")) {
    const equals = pair.indexOf("=");
    const name = equals < 0 ? pair : pair.slice(0, equals);
    if (!parameters.has(name)) parameters.set(name, equals < 0 ? "" : pair.slice(equals + 1));
  }
  return parameters;
}

function compileQueryParameters(
  matchers: readonly QueryParameterMatcher[],
  place: Place,
  problems: Problems,
): RouteCondition {
  const tests = matchers.map((matcher, index) =>
    compileQueryParameter(matcher, place.field("query_parameters", index), problems),
  );
  return (request) => {
    const parameters = parseQuery(request.path);
    return tests.every((test) => test(parameters));
  };
}

function compileQueryParameter(
  matcher: QueryParameterMatcher,
  place: Place,
  problems: Problems,
): (parameters: Parameters) => boolean {
  const { name } = matcher;
  if (name === "") problems.error(place.field("name"), "value length must be at least 1 characters");
  const specifier = matcher.queryParameterMatchSpecifier;
  if (specifier.case === "stringMatch") {
    const test = compileStringMatcher(specifier.value, place.field("string_match"), problems);
    return (parameters) => {
      const value = parameters.get(name);
      return value !== undefined && test(value);
    };
  }
  const wanted = specifier.case === undefined || specifier.value;
  return (parameters) => parameters.has(name) === wanted;
}
