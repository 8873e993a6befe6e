// match_typed_subject_alt_names (and its untyped forerunner) into matches on a certificate's names.
import {
  type CertificateValidationContext,
  SubjectAltNameMatcher_SanType as SanType,
} from "@tulle/xds/envoy/extensions/transport_sockets/tls/v3/common_pb";
import { type PeerNameMatch, type PeerNameType, matchesDnsName } from "../tls/peer-names.ts";
import { compileStringMatcher } from "../fields/matchers/string-matcher.ts";
import type { Place, Problems } from "../fields/problems.ts";

const typeNames = new Map<number, PeerNameType>([
  [SanType.EMAIL, "email"],
  [SanType.DNS, "dns"],
  [SanType.URI, "uri"],
  [SanType.IP_ADDRESS, "ip_address"],
]);

export function compilePeerNameMatches(
  message: CertificateValidationContext,
  place: Place,
  problems: Problems,
): readonly PeerNameMatch[] {
  const matches: PeerNameMatch[] = [];
  for (const [index, matcher] of message.matchTypedSubjectAltNames.entries()) {
    const at = place.field("match_typed_subject_alt_names", index);
    const type = typeNames.get(matcher.sanType);
    if (type === undefined) problems.error(at.field("san_type"), "EMAIL, DNS, URI or IP_ADDRESS is required");
    else if (matcher.matcher === undefined) problems.error(at.field("matcher"), "value is required");
    else matches.push(nameMatch(type, matcher.matcher, at.field("matcher"), problems));
  }
  // Envoy reads the old form as one match for each kind of name.
  if (message.matchTypedSubjectAltNames.length > 0) return matches;
  for (const [index, matcher] of message.matchSubjectAltNames.entries()) {
    const at = place.field("match_subject_alt_names", index);
    for (const type of typeNames.values()) matches.push(nameMatch(type, matcher, at, problems));
  }
  return matches;
}

type StringMatcher = NonNullable<CertificateValidationContext["matchTypedSubjectAltNames"][number]["matcher"]>;

function nameMatch(type: PeerNameType, matcher: StringMatcher, place: Place, problems: Problems): PeerNameMatch {
  const pattern = matcher.matchPattern;
  // A DNS name may hold a wildcard, and the exact name that is asked for is compared by the rules for host names.
  if (type === "dns" && pattern.case === "exact") {
    return { type, matches: (value) => matchesDnsName(value, pattern.value) };
  }
  return { type, matches: compileStringMatcher(matcher, place, problems) };
}
