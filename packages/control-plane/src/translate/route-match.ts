// A match block of a VirtualService → Envoy's RouteMatch.
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { type HttpMatch, routedClaim, type StringMatch } from "@tulle/config";
import {
  type HeaderMatcher,
  HeaderMatcherSchema,
  type QueryParameterMatcherSchema,
  type RouteMatch,
  RouteMatchSchema,
} from "@tulle/xds/envoy/config/route/v3/route_components_pb";
import type { StringMatcherSchema } from "@tulle/xds/envoy/type/matcher/v3/string_pb";
import { claimMatchOf, type MetadataMatch } from "./authorization/text-match.ts";

type HeaderMatcherInit = MessageInitShape<typeof HeaderMatcherSchema>;

/** Every request, when `match` is missing. */
export function routeMatch(match: HttpMatch | undefined): RouteMatch {
  const { uri, method, authority, scheme, headers = {}, withoutHeaders = {}, queryParams = {} } = match ?? {};
  const { claims, fields } = claimsAndFields(headers);
  const { claims: unwantedClaims, fields: unwantedFields } = claimsAndFields(withoutHeaders);
  return create(RouteMatchSchema, {
    pathSpecifier: pathSpecifier(uri),
    // A regular expression says itself what it takes.
    ...(match?.ignoreUriCase === true && uri?.regex === undefined ? { caseSensitive: false } : {}),
    headers: [
      ...fields.map(([name, value]) => headerMatcher(name, value)),
      ...unwantedFields.map(([name, value]) => absentHeaderMatcher(name, value)),
      ...(method === undefined ? [] : [headerMatcher(":method", method)]),
      ...(authority === undefined ? [] : [headerMatcher(":authority", authority)]),
      ...(scheme === undefined ? [] : [headerMatcher(":scheme", scheme)]),
    ],
    queryParameters: Object.entries(queryParams).map(([name, value]) => queryMatcher(name, value)),
    dynamicMetadata: [
      ...claims.map(([name, value]) => claimMatcher(name, value)),
      ...unwantedClaims.map(([name, value]) => ({ ...claimMatcher(name, value), invert: true })),
    ],
  });
}

type NamedMatch = readonly [name: string, value: StringMatch];

/** Claims of the request's token stand among the headers; the names of real ones are taken in any case. */
function claimsAndFields(headers: Readonly<Record<string, StringMatch>>) {
  const all: readonly NamedMatch[] = Object.entries(headers);
  return {
    claims: all.filter(([name]) => name.startsWith("@")),
    fields: all.filter(([name]) => !name.startsWith("@")).map(([name, value]) => [name.toLowerCase(), value] as const),
  };
}

/**
 * On what the gateway's own check of tokens has left (Istio: translateMetadataMatch); `{}` asks for the claim alone.
 */
function claimMatcher(headerName: string, value: StringMatch): MetadataMatch {
  const claim = routedClaim(headerName);
  // Parsing takes no other name, and without its condition the route would hold for everybody.
  if (claim === undefined) throw new Error(`${JSON.stringify(headerName)} names no claim`);
  return claimMatchOf(claim, stringMatcher(value));
}

/** Whether nothing gets past the match, so that later routes of the same VirtualService cannot be reached. */
export function isCatchAll(match: RouteMatch): boolean {
  return (
    match.pathSpecifier.case === "prefix" &&
    match.pathSpecifier.value === "/" &&
    match.headers.length + match.queryParameters.length + match.dynamicMetadata.length === 0
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

/** A header that is not there counts as an empty one, which no value but a presence is asked of. */
function absentHeaderMatcher(name: string, value: StringMatch): HeaderMatcherInit {
  const isForPresence = stringMatcher(value) === undefined;
  return { ...headerMatcher(name, value), invertMatch: true, treatMissingHeaderAsEmpty: !isForPresence };
}

function queryMatcher(name: string, value: StringMatch): MessageInitShape<typeof QueryParameterMatcherSchema> {
  const stringMatch = stringMatcher(value);
  if (stringMatch === undefined) return { name, queryParameterMatchSpecifier: { case: "presentMatch", value: true } };
  return { name, queryParameterMatchSpecifier: { case: "stringMatch", value: stringMatch } };
}

/** Undefined: any value will do. */
export function stringMatcher(value: StringMatch): MessageInitShape<typeof StringMatcherSchema> | undefined {
  if (value.exact !== undefined) return { matchPattern: { case: "exact", value: value.exact } };
  if (value.prefix !== undefined) return { matchPattern: { case: "prefix", value: value.prefix } };
  // `*` is no regular expression: Istio reads it as "whatever value".
  if (value.regex === undefined || value.regex === "*") return undefined;
  return { matchPattern: { case: "safeRegex", value: { regex: value.regex } } };
}

/** Whether a pseudo-header is what the whole regular expression says, or, inverted, is not. */
export function pseudoHeader(name: string, regex: string, invertMatch: boolean): HeaderMatcher {
  return create(HeaderMatcherSchema, {
    name,
    headerMatchSpecifier: {
      case: "stringMatch",
      value: { matchPattern: { case: "safeRegex", value: { regex } } },
    },
    invertMatch,
  });
}
