// Lets a request through that brings the tokens which a rule asks for, and tells the application and later filters what
// they say (extensions.filters.http.jwt_authn.v3.JwtAuthentication).
import type { Counter, Logger } from "@tulle/telemetry";
import type { MatchContext, RouteCondition } from "../../../fields/compile-route-match.ts";
import type { FilterStatus, HttpFilter, HttpStream } from "../../../http/filter.ts";
import { HeaderMap } from "../../../http/header-map.ts";
import { isCorsPreflight } from "../../../http/cors-preflight.ts";
import type { RequestHead } from "../../../http/message.ts";
import type { Authentication } from "./authenticate.ts";
import type { Requirement } from "./compile-requirement.ts";
import { type JwtFailure, jwtFailures } from "./jwt-failure.ts";
import type { TokenCache } from "./token-cache.ts";

export interface JwtRule {
  readonly matches: RouteCondition;
  /** Undefined = requests that match need nothing. */
  readonly requirement: Requirement | undefined;
}

export type RouteRequirement =
  | { readonly type: "disabled" }
  /** A name in the filter's own requirement_map. */
  | { readonly type: "named"; readonly name: string };

export interface JwtAuthnStats {
  readonly allowed: Counter;
  readonly denied: Counter;
  readonly corsPreflightBypassed: Counter;
  readonly cacheHits: Counter;
  readonly cacheMisses: Counter;
}

export interface JwtAuthnFilterOptions {
  readonly name: string;
  /** The first that matches decides. */
  readonly rules: readonly JwtRule[];
  readonly namedRequirements: ReadonlyMap<string, Requirement>;
  readonly bypassesCorsPreflight: boolean;
  readonly hidesFailure: boolean;
  readonly cache: TokenCache;
  readonly stats: JwtAuthnStats;
  readonly log: Logger;
}

const metadataNamespace = "envoy.filters.http.jwt_authn";
/** Of the path that is told in a challenge. */
const maxRealmPathLength = 256;

export class JwtAuthnFilter implements HttpFilter {
  readonly name: string;
  readonly #options: JwtAuthnFilterOptions;

  constructor(options: JwtAuthnFilterOptions) {
    this.name = options.name;
    this.#options = options;
  }

  onRequestHead(stream: HttpStream): FilterStatus {
    const { stats, bypassesCorsPreflight } = this.#options;
    if (bypassesCorsPreflight && isCorsPreflight(stream.request)) {
      stats.corsPreflightBypassed.increment();
      stats.allowed.increment();
      return "continue";
    }
    const ofRoute = stream.routeMatch?.route.perFilterConfig.get(this.name) as RouteRequirement | undefined;
    const requirement = ofRoute === undefined ? this.#ruleFor(stream) : this.#namedRequirement(ofRoute);
    if (typeof requirement === "string") return this.#refuseUnknownRequirement(stream, requirement);
    if (requirement === undefined) {
      stats.allowed.increment();
      return "continue";
    }
    return this.#ask(stream, requirement);
  }

  #ruleFor(stream: HttpStream): Requirement | undefined {
    const context: MatchContext = { value: stream.dataPath.random, dynamicMetadata: stream.info.dynamicMetadata };
    for (const { matches, requirement } of this.#options.rules) {
      if (matches(stream.request, context)) return requirement;
    }
    return undefined;
  }

  /** The text says that there is none of that name. */
  #namedRequirement(ofRoute: RouteRequirement): Requirement | undefined | string {
    if (ofRoute.type === "disabled") return undefined;
    const { namedRequirements } = this.#options;
    const requirement = namedRequirements.get(ofRoute.name);
    if (requirement !== undefined) return requirement;
    const names = [...namedRequirements.keys()].sort().join(",");
    return `Wrong requirement_name: ${ofRoute.name}. It should be one of [${names}]`;
  }

  #refuseUnknownRequirement(stream: HttpStream, reason: string): FilterStatus {
    const { stats, hidesFailure } = this.#options;
    stats.denied.increment();
    const body = hidesFailure ? "" : `Failed JWT authentication: ${reason}`;
    stream.sendLocalReply({ status: 403, body, details: deniedDetails(reason) });
    return "stop";
  }

  #ask(stream: HttpStream, requirement: Requirement): FilterStatus {
    const { cache, stats } = this.#options;
    // Requirements may rewrite the path; the challenge names what the client asked for.
    const realm = originalUri(stream.request);
    const authentication: Authentication = {
      request: stream.request,
      nowSeconds: Math.floor(stream.dataPath.clock.wallMs() / 1000),
      cache,
      cacheHits: stats.cacheHits,
      cacheMisses: stats.cacheMisses,
      metadata: {},
      clearsRouteCache: false,
    };
    const failure = requirement(authentication);
    const { metadata } = authentication;
    if (Object.keys(metadata).length > 0) {
      const all = (stream.info.dynamicMetadata ??= {});
      all[metadataNamespace] = { ...all[metadataNamespace], ...metadata };
    }
    if (failure !== undefined) return this.#refuse(stream, failure, realm);
    stats.allowed.increment();
    if (authentication.clearsRouteCache) stream.clearRouteCache();
    return "continue";
  }

  #refuse(stream: HttpStream, failure: JwtFailure, realm: string): FilterStatus {
    const { stats, log, hidesFailure } = this.#options;
    const reason = jwtFailures[failure];
    stats.denied.increment();
    // Without the query, where the token itself may stand.
    if (log.debugEnabled) log.debug("token refused", { reason, path: stream.request.path.replace(/\?.*/s, "") });
    // RFC 6750 §3: who sent no token is told of no error.
    const error = failure === "missing" ? "" : ', error="invalid_token"';
    stream.sendLocalReply({
      status: failure === "audienceNotAllowed" ? 403 : 401,
      body: hidesFailure ? "" : reason,
      details: deniedDetails(reason),
      ...(!hidesFailure && { headers: new HeaderMap(["www-authenticate", `Bearer realm="${realm}"${error}`]) }),
    });
    return "stop";
  }
}

function originalUri({ scheme, authority, path, headers }: RequestHead): string {
  if (path === "") return "";
  const original = headers.get("x-envoy-original-path") ?? path;
  return `${scheme}://${authority}${original.slice(0, maxRealmPathLength)}`;
}

/** A space would end the field of an access log. */
function deniedDetails(reason: string): string {
  return `jwt_authn_access_denied{${reason.replaceAll(/\s/g, "_")}}`;
}
