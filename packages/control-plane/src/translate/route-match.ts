// A match block of a VirtualService → Envoy's RouteMatch.
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { claimPath, type HttpMatch, type StringMatch } from "@tulle/config";
import {
  type HeaderMatcherSchema,
  type RouteMatch,
  RouteMatchSchema,
} from "@tulle/xds/envoy/config/route/v3/route_components_pb";
import type { StringMatcherSchema } from "@tulle/xds/envoy/type/matcher/v3/string_pb";
import { claimMatchOf, type MetadataMatch } from "./authorization/text-match.ts";

type HeaderMatcherInit = MessageInitShape<typeof HeaderMatcherSchema>;

/** Conditions that are accepted and not carried yet. A route is left out rather than widened to what they exclude. */
const notCarried = [
  "scheme",
  "port",
  "sourceLabels",
  "gateways",
  "queryParams",
  "ignoreUriCase",
  "withoutHeaders",
  "sourceNamespace",
] as const satisfies readonly (keyof HttpMatch)[];

/** Whether a proxy can decide the match; if not, it never matches, and the resource has a finding that says so. */
export function isCarried(match: HttpMatch): boolean {
  return notCarried.every((field) => match[field] === undefined);
}

/** Every request, when `match` is missing. */
export function routeMatch(match: HttpMatch | undefined): RouteMatch {
  const { uri, method, authority, headers = {} } = match ?? {};
  const all = Object.entries(headers);
  return create(RouteMatchSchema, {
    pathSpecifier: pathSpecifier(uri),
    headers: [
      ...all.flatMap(([name, value]) => (name.startsWith("@") ? [] : [headerMatcher(name.toLowerCase(), value)])),
      ...(method === undefined ? [] : [headerMatcher(":method", method)]),
      ...(authority === undefined ? [] : [headerMatcher(":authority", authority)]),
    ],
    dynamicMetadata: all.flatMap(([name, value]) => claimMatcher(name, value) ?? []),
  });
}

/** On what the gateway's own check of tokens has left (Istio: translateMetadataMatch); `{}` asks for the claim alone. */
function claimMatcher(headerName: string, value: StringMatch): MetadataMatch | undefined {
  const claim = routedClaim(headerName);
  return claim && claimMatchOf(claim, stringMatcher(value));
}

/** The claim of `@request.auth.claims.a.b` or `@request.auth.claims[a][b]`, outermost first. */
function routedClaim(headerName: string): readonly string[] | undefined {
  const plain = /^@request\.auth\.claims\.(.+)$/.exec(headerName)?.[1];
  return plain === undefined ? claimPath(headerName.replace(/^@/, "")) : plain.split(".");
}

/** Whether nothing gets past the match, so that later routes of the same VirtualService cannot be reached. */
export function isCatchAll(match: RouteMatch): boolean {
  return (
    match.pathSpecifier.case === "prefix" &&
    match.pathSpecifier.value === "/" &&
    match.headers.length + match.dynamicMetadata.length === 0
  );
}

function pathSpecifier(
  uri: StringMatch | undefined,
): NonNullable<MessageInitShape<typeof RouteMatchSchema>["pathSpecifier"]> {
  if (uri?.exact !== undefined) return { case: "path", value: uri.exact };
  if (uri?.regex !== undefined) return { case: "safeRegex", value: { regex: uri.regex } };
  return { case: "prefix", value: uri?.prefix ?? "/" };
}

function headerMatcher(name: string, value: StringMatch): HeaderMatcherInit {
  const stringMatch = stringMatcher(value);
  if (stringMatch === undefined) return { name, headerMatchSpecifier: { case: "presentMatch", value: true } };
  return { name, headerMatchSpecifier: { case: "stringMatch", value: stringMatch } };
}

function stringMatcher(value: StringMatch): MessageInitShape<typeof StringMatcherSchema> | undefined {
  if (value.exact !== undefined) return { matchPattern: { case: "exact", value: value.exact } };
  if (value.prefix !== undefined) return { matchPattern: { case: "prefix", value: value.prefix } };
  if (value.regex !== undefined) return { matchPattern: { case: "safeRegex", value: { regex: value.regex } } };
  return undefined;
}
