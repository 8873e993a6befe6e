// Rows of token checks (extensions.filters.http.jwt_authn.v3).
import {
  JwtAuthenticationSchema,
  PerRouteConfigSchema,
} from "@tulle/xds/envoy/extensions/filters/http/jwt_authn/v3/config_pb";
import { checkedMessage } from "../../../fields/checked-message.ts";
import type { FieldRows } from "../../../fields/field-row.ts";
import { matcherFields } from "../../../fields/matchers/matcher-fields.ts";
import { sharedFields } from "../../../fields/shared-fields.ts";

const jwt = "envoy.extensions.filters.http.jwt_authn.v3";

const jwtAuthnFields: FieldRows = {
  [`${jwt}.JwtAuthentication`]: `providers rules bypass_cors_preflight requirement_map strip_failure_response
    stat_prefix`,
  [`${jwt}.JwtProvider`]: {
    used: `issuer audiences subjects require_expiration max_lifetime local_jwks forward from_headers from_params
      from_cookies forward_payload_header pad_forward_payload_header payload_in_metadata normalize_payload_in_metadata
      header_in_metadata clock_skew_seconds claim_to_headers clear_route_cache`,
    harmless: { jwt_cache_config: "one cache of tokens, with a bound of its own, for all providers" },
    told: "remote_jwks",
  },
  [`${jwt}.JwtProvider.NormalizePayload`]: "space_delimited_claims",
  [`${jwt}.JwtHeader`]: "name value_prefix",
  [`${jwt}.JwtClaimToHeader`]: "header_name claim_name claim_path",
  [`${jwt}.JwtClaimToHeader.PathSegment`]: "key",
  [`${jwt}.RequirementRule`]: "match requires requirement_name",
  [`${jwt}.JwtRequirement`]: `provider_name provider_and_audiences requires_any requires_all allow_missing_or_failed
    allow_missing`,
  [`${jwt}.ProviderWithAudiences`]: "provider_name audiences",
  [`${jwt}.JwtRequirementOrList`]: "requirements",
  [`${jwt}.JwtRequirementAndList`]: "requirements",
  [`${jwt}.PerRouteConfig`]: "disabled requirement_name",
};

const tables = [jwtAuthnFields, matcherFields, sharedFields] as const;

export const jwtAuthenticationMessage = checkedMessage(JwtAuthenticationSchema, ...tables);
export const jwtPerRouteMessage = checkedMessage(PerRouteConfigSchema, ...tables);
