// The conditions that permissions and principals share: header, path and address range.
import type { CidrRange } from "@tulle/xds/envoy/config/core/v3/address_pb";
import type { HeaderMatcher } from "@tulle/xds/envoy/config/route/v3/route_components_pb";
import type { PathMatcher } from "@tulle/xds/envoy/type/matcher/v3/path_pb";
import { compileCidr } from "../../../fields/cidr.ts";
import { pathWithoutQuery } from "../../../fields/compile-route-match.ts";
import { compileHeaderMatcher, compileRequestHeaderMatcher } from "../../../fields/matchers/header-matcher.ts";
import { requestHeader } from "../../../http/read-header.ts";
import type { Place, Problems } from "../../../fields/problems.ts";
import type { RequestHead } from "../../../http/message.ts";
import { ipOf, ipv4Of, maskedIpv4 } from "./address.ts";
import {
  type AddressSource,
  type AnchorSet,
  type Condition,
  type TextSource,
  never,
  presence,
  textAnchorSets,
  textCondition,
} from "./condition.ts";
import { regexAnchorSets } from "./regex-anchors.ts";

const pathSource: TextSource = {
  key: "path",
  // A CONNECT without a path has none that a policy could name.
  read: ({ path }) => (path === "" ? undefined : pathWithoutQuery(path)),
};

export const remoteAddress: AddressSource = { key: "remote", read: (info) => info.downstreamRemoteAddress };
export const directRemoteAddress: AddressSource = {
  key: "direct_remote",
  read: (info) => info.downstreamDirectRemoteAddress,
};
export const localAddress: AddressSource = { key: "local", read: (info) => info.downstreamLocalAddress };

export function compilePathCondition(matcher: PathMatcher, place: Place, problems: Problems): Condition {
  if (matcher.rule.case === undefined) {
    problems.error(place.field("path"), "is required");
    return never;
  }
  return textCondition(pathSource, matcher.rule.value, place.field("path"), problems);
}

/**
 * Of a header that came more than once, each value is judged by itself (Envoy's RBAC, unlike its routes): values joined
 * by commas would be none of those that a policy names. An inverted matcher wants that none of them is what it names.
 */
export function compileHeaderCondition(matcher: HeaderMatcher, place: Place, problems: Problems): Condition {
  const name = matcher.name.toLowerCase();
  const anchorSets = headerAnchorSets(matcher);
  if (isPseudoHeader(name)) return { matches: compileRequestHeaderMatcher(matcher, place, problems), anchorSets };
  const test = compileHeaderMatcher(matcher, (value: string | undefined) => value, place, problems);
  return {
    matches: (request) => {
      const values = headerValues(request, name);
      if (values === undefined || typeof values === "string") return test(values);
      return matcher.invertMatch ? values.every(test) : values.some(test);
    },
    anchorSets,
  };
}

function isPseudoHeader(name: string): boolean {
  return name.startsWith(":") || name === "host";
}

/** One value as it is, several as a list. */
function headerValues({ headers: { entries } }: RequestHead, name: string): string | readonly string[] | undefined {
  let values: string | string[] | undefined;
  for (let index = 0; index < entries.length; index += 2) {
    if (entries[index] !== name) continue;
    const value = entries[index + 1]!;
    if (values === undefined) values = value;
    else if (typeof values === "string") values = [values, value];
    else values.push(value);
  }
  return values;
}

function headerAnchorSets(matcher: HeaderMatcher): readonly AnchorSet[] {
  if (matcher.invertMatch || matcher.treatMissingHeaderAsEmpty) return [];
  const name = matcher.name.toLowerCase();
  const read: TextSource["read"] = isPseudoHeader(name)
    ? requestHeader(name)
    : (request) => headerValues(request, name);
  const source: TextSource = { key: `header:${name}`, read };
  const specifier = matcher.headerMatchSpecifier;
  switch (specifier.case) {
    case "stringMatch":
      return textAnchorSets(source, specifier.value);
    case "safeRegexMatch":
      return [...regexAnchorSets(source, specifier.value.regex), presence(source)];
    case "exactMatch":
      return [[{ kind: "exact", source, text: specifier.value, ignoresCase: false }]];
    case "prefixMatch":
      return [[{ kind: "prefix", source, text: specifier.value, ignoresCase: false }]];
    case "suffixMatch":
      return [[{ kind: "suffix", source, text: specifier.value, ignoresCase: false }]];
    case "containsMatch":
    case "rangeMatch":
      return [presence(source)];
    case "presentMatch":
      return specifier.value ? [presence(source)] : [];
    case undefined:
      return [presence(source)];
  }
}

export function compileAddressCondition(
  source: AddressSource,
  range: CidrRange,
  place: Place,
  problems: Problems,
): Condition {
  const cidr = compileCidr(range, place, problems);
  const ip = ipv4Of(range.addressPrefix);
  if (ip < 0) return { matches: (_request, info) => cidr.contains(ipOf(source.read(info))), anchorSets: [] };
  const { prefixLength } = cidr;
  const network = maskedIpv4(ip, prefixLength);
  return {
    matches: (_request, info) => {
      const address = ipv4Of(source.read(info));
      return address >= 0 && maskedIpv4(address, prefixLength) === network;
    },
    anchorSets: [[{ kind: "ipv4", source, network, prefixLength }]],
  };
}
