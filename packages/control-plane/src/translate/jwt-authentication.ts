// RequestAuthentications → envoy.filters.http.jwt_authn: a request with a bad token is refused, one without any goes
// on, for AuthorizationPolicies to judge (Istio: convertToEnvoyJwtConfig).
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { Any } from "@bufbuild/protobuf/wkt";
import {
  JwtAuthenticationSchema,
  type JwtProviderSchema,
  type JwtRequirementSchema,
} from "@tulle/xds/envoy/extensions/filters/http/jwt_authn/v3/config_pb";
import type { ScopedJwtRule } from "../scope/proxy-view.ts";
import { pack } from "./messages.ts";

type ProviderInit = MessageInitShape<typeof JwtProviderSchema>;
type RequirementInit = MessageInitShape<typeof JwtRequirementSchema>;

/** The key of the payload in the filter's metadata, which authorization reads. */
export const payloadKey = "payload";

/** Claims that hold several words in one text become lists in the metadata, as `scope` of RFC 8693 §4.2. */
const wordLists = ["permission", "scope"];

/**
 * The key set of an issuer whose keys have not been fetched yet: no token passes. A provider needs some key, so this is
 * a point of P-256 that nobody knows the logarithm of: its x is the first SHA-256 of "tulle: no keys yet <n>" that is
 * on the curve.
 */
export const noKeysYet = JSON.stringify({
  keys: [
    {
      kty: "EC",
      crv: "P-256",
      alg: "ES256",
      kid: "no-keys-yet",
      x: "tnUdZDuzOe6BwsRcYRI31KJJwS4MmeJmmIlEVvG_AaA",
      y: "i8DPJM8e1uJWfuH9UQacjHesbSILMdGOHloGGOvqZr4",
    },
  ],
});

export interface JwtAuthenticationOptions {
  /** At a gateway claims may become headers that its routes look at. */
  readonly clearsRouteCache: boolean;
}

export function jwtAuthentication(rules: readonly ScopedJwtRule[], options: JwtAuthenticationOptions): Any {
  const names = rules.map((_rule, index) => `origins-${index}`);
  return pack(JwtAuthenticationSchema, {
    providers: Object.fromEntries(rules.map((rule, index) => [names[index]!, provider(rule, options)])),
    rules: [
      {
        match: { pathSpecifier: { case: "prefix", value: "/" } },
        requirementType: { case: "requires", value: requirement(names) },
      },
    ],
    bypassCorsPreflight: true,
  });
}

function provider(rule: ScopedJwtRule, { clearsRouteCache }: JwtAuthenticationOptions): ProviderInit {
  return {
    issuer: rule.issuer,
    audiences: [...(rule.audiences ?? [])],
    jwksSourceSpecifier: {
      case: "localJwks",
      value: { specifier: { case: "inlineString", value: rule.jwks ?? noKeysYet } },
    },
    forward: rule.forwardOriginalToken ?? false,
    fromHeaders: (rule.fromHeaders ?? []).map(({ name, prefix = "" }) => ({ name, valuePrefix: prefix })),
    fromParams: [...(rule.fromParams ?? [])],
    fromCookies: [...(rule.fromCookies ?? [])],
    forwardPayloadHeader: rule.outputPayloadToHeader ?? "",
    payloadInMetadata: payloadKey,
    normalizePayloadInMetadata: {
      spaceDelimitedClaims: [...new Set([...wordLists, ...(rule.spaceDelimitedClaims ?? [])])],
    },
    claimToHeaders: (rule.outputClaimToHeaders ?? []).map(({ header, claim }) => ({
      headerName: header,
      claimName: claim,
    })),
    clearRouteCache: clearsRouteCache,
  };
}

/**
 * One issuer: its token is good or there is none. Several: one of them takes the token, or each of them finds none at
 * its places – which alone would refuse a token of the one where the other looks for its own.
 */
function requirement(names: readonly string[]): RequirementInit {
  const good = names.map((name): RequirementInit => ({ requiresType: { case: "providerName", value: name } }));
  const goodOrMissing = good.map((each) => anyOf([each, { requiresType: { case: "allowMissing", value: {} } }]));
  if (names.length === 1) return goodOrMissing[0]!;
  return anyOf([...good, { requiresType: { case: "requiresAll", value: { requirements: goodOrMissing } } }]);
}

function anyOf(requirements: RequirementInit[]): RequirementInit {
  return { requiresType: { case: "requiresAny", value: { requirements } } };
}
