// Whom a policy is about, as a condition (config.rbac.v3.Principal).
import { MetadataSource, type Principal } from "@tulle/xds/envoy/config/rbac/v3/rbac_pb";
import type { FilterStateMatcher } from "@tulle/xds/envoy/type/matcher/v3/filter_state_pb";
import type { Place, Problems } from "../../../fields/problems.ts";
import type { PeerCertificate } from "../../../tls/tls-info.ts";
import { type Condition, type TextSource, allOf, always, never, not, textCondition } from "./condition.ts";
import { anyOf } from "./condition-index.ts";
import { compileMetadataCondition } from "./metadata-condition.ts";
import {
  compileAddressCondition,
  compileHeaderCondition,
  compilePathCondition,
  directRemoteAddress,
  remoteAddress,
} from "./request-conditions.ts";

/** Istio's name for the identity of the peer, where a listener in front of this one has checked it. */
const peerPrincipalKey = "io.istio.peer_principal";

const namesOf = new WeakMap<PeerCertificate, readonly string[]>();

/** All the names of a certificate that may be a principal, in Envoy's order: URI SANs, DNS SANs, the subject. */
const principalSource: TextSource = {
  key: "principal",
  read: (_request, { downstreamPeerCertificate: certificate }) => {
    if (certificate === undefined) return undefined;
    let names = namesOf.get(certificate);
    if (names === undefined) {
      names = [...certificate.uriSans, ...certificate.dnsSans, certificate.subject];
      namesOf.set(certificate, names);
    }
    return names;
  },
};

const peerPrincipalSource: TextSource = {
  key: "peer_principal",
  read: (_request, info) => info.downstreamPeerCertificate?.uriSans[0],
};

const isTls: Condition = {
  matches: (_request, info) => info.downstreamPeerCertificate !== undefined,
  anchorSets: [],
};

export function compilePrincipal(principal: Principal, place: Place, problems: Problems): Condition {
  const identifier = principal.identifier;
  switch (identifier.case) {
    case "any":
      if (!identifier.value) problems.error(place.field("any"), "value must equal true");
      return always;
    case "andIds":
      return allOf(compileSet(identifier.value.ids, place.field("and_ids"), problems));
    case "orIds":
      return anyOf(compileSet(identifier.value.ids, place.field("or_ids"), problems));
    case "notId":
      return not(compilePrincipal(identifier.value, place.field("not_id"), problems));
    case "authenticated": {
      const name = identifier.value.principalName;
      if (name === undefined) return isTls;
      return textCondition(principalSource, name, place.field("authenticated").field("principal_name"), problems);
    }
    // The connection's own peer, both: no listener filter changes it here (source_ip is the older name).
    case "sourceIp":
      return compileAddressCondition(directRemoteAddress, identifier.value, place.field("source_ip"), problems);
    case "directRemoteIp":
      return compileAddressCondition(directRemoteAddress, identifier.value, place.field("direct_remote_ip"), problems);
    case "remoteIp":
      return compileAddressCondition(remoteAddress, identifier.value, place.field("remote_ip"), problems);
    case "header":
      return compileHeaderCondition(identifier.value, place.field("header"), problems);
    case "urlPath":
      return compilePathCondition(identifier.value, place.field("url_path"), problems);
    case "metadata":
      return compileMetadataCondition(identifier.value, "dynamic", place.field("metadata"), problems);
    case "sourcedMetadata": {
      const origin = identifier.value.metadataSource === MetadataSource.ROUTE ? "route" : "dynamic";
      const at = place.field("sourced_metadata").field("metadata_matcher");
      return compileMetadataCondition(identifier.value.metadataMatcher, origin, at, problems);
    }
    case "filterState":
      return compileFilterState(identifier.value, place.field("filter_state"), problems);
    case "custom":
      problems.error(place.field("custom"), "this field is not supported");
      return never;
    case undefined:
      problems.error(place.field("identifier"), "is required");
      return never;
  }
}

function compileSet(ids: readonly Principal[], place: Place, problems: Problems): readonly Condition[] {
  if (ids.length === 0) problems.error(place.field("ids"), "value must contain at least 1 item(s)");
  return ids.map((id, index) => compilePrincipal(id, place.field("ids", index), problems));
}

function compileFilterState(matcher: FilterStateMatcher, place: Place, problems: Problems): Condition {
  if (matcher.key !== peerPrincipalKey) {
    problems.error(place.field("key"), `only ${peerPrincipalKey} is known, not '${matcher.key}'`);
    return never;
  }
  if (matcher.matcher.case !== "stringMatch") {
    problems.error(place, "string_match is required");
    return never;
  }
  return textCondition(peerPrincipalSource, matcher.matcher.value, place.field("string_match"), problems);
}
