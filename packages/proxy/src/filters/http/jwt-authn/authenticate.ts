// The tokens of one request against what providers ask of them. Nothing here waits: keys are at hand, and one signature
// costs less than handing it to another thread.
import type { Counter } from "@tulle/telemetry";
import type { RequestHead } from "../../../http/message.ts";
import type { AudienceCheck } from "./audience-check.ts";
import type { Provider } from "./compile-provider.ts";
import { forwardInHeaders, forwardInMetadata } from "./forward-claims.ts";
import { type Jwt, parseJwt } from "./parse-jwt.ts";
import type { JwtFailure } from "./jwt-failure.ts";
import type { TokenCache } from "./token-cache.ts";
import type { FoundToken, TokenLocations } from "./token-locations.ts";

/** One request on its way through the requirements. */
export interface Authentication {
  readonly request: RequestHead;
  readonly nowSeconds: number;
  readonly cache: TokenCache;
  readonly cacheHits: Counter;
  readonly cacheMisses: Counter;
  /** What providers leave for later filters and for the access log. */
  readonly metadata: Record<string, unknown>;
  /** A provider wants the route to be chosen again. */
  clearsRouteCache: boolean;
}

export interface TokenRules {
  readonly locations: TokenLocations;
  /** The one provider, or the one whose issuer a token names. */
  readonly providerFor: (issuer: string) => Provider | undefined;
  /** In place of the provider's own. */
  readonly areAudiencesAllowed?: AudienceCheck;
}

/** Tokens that one request may bring; each may cost a signature, and nobody needs more than a few. */
const maxTokens = 16;

/**
 * Undefined when the request has a token and all its tokens are good: a good token must not let pass a bad one, which
 * the application might read.
 */
export function authenticate(rules: TokenRules, authentication: Authentication): JwtFailure | undefined {
  const found = takeTokens(rules, authentication);
  if (found.length === 0) return "missing";
  if (found.length > maxTokens) return "multipleTokens";
  // From the last to the first, as Envoy: it decides which of two bad tokens is named.
  for (let index = found.length - 1; index >= 0; index -= 1) {
    const failure = acceptToken(found[index]!, rules, authentication);
    if (failure !== undefined) return failure;
  }
  return undefined;
}

/**
 * Takes what good tokens bring, and looks at all; undefined when none is bad. Where Envoy's allow_missing goes by the
 * token that it looks at last, a bad one before it is refused here.
 */
export function authenticateEach(rules: TokenRules, authentication: Authentication): JwtFailure | undefined {
  const found = takeTokens(rules, authentication);
  if (found.length > maxTokens) return "multipleTokens";
  let failure: JwtFailure | undefined;
  for (let index = found.length - 1; index >= 0; index -= 1) {
    failure = acceptToken(found[index]!, rules, authentication) ?? failure;
  }
  return failure;
}

function takeTokens({ locations }: TokenRules, { request }: Authentication): readonly FoundToken[] {
  locations.sanitize(request);
  return locations.find(request);
}

function acceptToken(found: FoundToken, rules: TokenRules, authentication: Authentication): JwtFailure | undefined {
  const { cache, nowSeconds, request } = authentication;
  const digest = cache.digest(found.token);
  const known = digest === undefined ? undefined : cache.find(digest, nowSeconds);
  const parsed = known === undefined ? parseJwt(found.token) : known.jwt;
  if (typeof parsed === "string") return parsed;
  if (!found.isIssuerAllowed(parsed.issuer)) return "unknownIssuer";
  const provider = rules.providerFor(parsed.issuer);
  if (provider === undefined) return "unknownIssuer";
  const { clockSkewSeconds, keySetVersion } = provider;
  const refusal = checkClaims(parsed, provider, rules.areAudiencesAllowed ?? provider.areAudiencesAllowed, nowSeconds);
  if (refusal !== undefined) return refusal;
  if (known?.keySetVersions.has(keySetVersion)) {
    authentication.cacheHits.increment();
  } else {
    authentication.cacheMisses.increment();
    const failure = provider.keys.verify(parsed);
    if (failure !== undefined) return failure;
    if (digest !== undefined) cache.keep(digest, parsed, keySetVersion, clockSkewSeconds);
  }
  const { message } = provider;
  forwardInHeaders(message, parsed, request.headers);
  if (!message.forward) found.remove(request);
  forwardInMetadata(message, parsed, authentication.metadata);
  if (message.clearRouteCache) authentication.clearsRouteCache = true;
  return undefined;
}

function checkClaims(
  jwt: Jwt,
  provider: Provider,
  areAudiencesAllowed: AudienceCheck,
  nowSeconds: number,
): JwtFailure | undefined {
  const { clockSkewSeconds, maxLifetimeSeconds } = provider;
  if (nowSeconds + clockSkewSeconds < jwt.notBeforeSeconds) return "notYetValid";
  if (jwt.expiresSeconds !== 0 && nowSeconds > jwt.expiresSeconds + clockSkewSeconds) return "expired";
  if (!provider.isSubjectAllowed(jwt.subject)) return "verificationFails";
  if (maxLifetimeSeconds !== undefined) {
    if (jwt.expiresSeconds === 0 || jwt.expiresSeconds - nowSeconds > maxLifetimeSeconds) return "verificationFails";
  }
  return areAudiencesAllowed(jwt.audiences) ? undefined : "audienceNotAllowed";
}
