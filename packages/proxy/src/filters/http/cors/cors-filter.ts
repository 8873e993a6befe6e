// Answers browsers that ask whether a page of another origin may call (preflights), and tells them what it may read of
// an answer, as the route's policy says (extensions.filters.http.cors.v3;
// https://fetch.spec.whatwg.org/#http-cors-protocol).
import type { Counter } from "@tulle/telemetry";
import { isCorsPreflight } from "../../../http/cors-preflight.ts";
import { type FilterStatus, type HttpFilter, type HttpStream, StreamSlot } from "../../../http/filter.ts";
import { HeaderMap } from "../../../http/header-map.ts";
import type { RequestHead, ResponseHead } from "../../../http/message.ts";
import type { CorsPolicy } from "./cors-policy.ts";

export interface CorsStats {
  readonly originValid: Counter;
  readonly originInvalid: Counter;
}

/** Of a stream whose origin is allowed. */
interface AllowedCall {
  readonly policy: CorsPolicy;
  readonly origin: string;
}

export class CorsFilter implements HttpFilter {
  readonly name: string;
  readonly #stats: CorsStats;
  readonly #allowed = new StreamSlot<AllowedCall>();

  constructor(name: string, stats: CorsStats) {
    this.name = name;
    this.#stats = stats;
  }

  onRequestHead(stream: HttpStream): FilterStatus {
    const { routeMatch, request, dataPath } = stream;
    const policy = routeMatch?.route.perFilterConfig.get(this.name) as CorsPolicy | undefined;
    // A route that answers by itself has no policy, as in Envoy.
    if (policy === undefined || routeMatch?.action.type !== "forward") return "continue";
    const isEnabled = falls(policy.enabledShare, dataPath.random);
    if (!isEnabled && !falls(policy.shadowShare, dataPath.random)) return "continue";
    const origin = request.headers.getJoined("origin");
    if (origin === undefined || origin === "") return "continue";
    const isAllowed = policy.allowOrigins.some((matches) => matches("*") || matches(origin));
    if (isAllowed) this.#stats.originValid.increment();
    else this.#stats.originInvalid.increment();
    if (!isEnabled) return "continue";
    if (isAllowed) this.#allowed.set(stream, { policy, origin });
    if (!isCorsPreflight(request)) return "continue";
    if (!isAllowed && policy.forwardUnmatchedPreflights !== false) return "continue";
    stream.info.responseCodeDetails = "cors_response";
    // Of an allowed origin the response's head tells more below.
    const headers = preflightHeaders(policy, request);
    if (!isAllowed && policy.allowCredentials === true) headers.set(allowCredentials, "true");
    stream.sendResponseHead({ status: 200, headers, upgrade: undefined }, true);
    return "stop";
  }

  onResponseHead(stream: HttpStream, { headers }: ResponseHead): void {
    const call = this.#allowed.get(stream);
    if (call === undefined) return;
    const { policy, origin } = call;
    headers.set("access-control-allow-origin", origin);
    if (policy.allowCredentials === true) headers.set(allowCredentials, "true");
    if (policy.exposeHeaders !== "") headers.set("access-control-expose-headers", policy.exposeHeaders);
  }
}

const allowCredentials = "access-control-allow-credentials";

function falls(share: number, random: () => number): boolean {
  return share > 0 && (share >= 1 || random() < share);
}

function preflightHeaders(policy: CorsPolicy, { headers: asked }: RequestHead): HeaderMap {
  const headers = new HeaderMap();
  const tell = (name: string, text: string, askedBy: string): void => {
    // `*` allows what was asked for, since browsers do not take it of calls with credentials.
    const value = text === "*" ? (asked.getJoined(askedBy) ?? "") : text;
    if (text !== "") headers.set(name, value);
  };
  tell("access-control-allow-methods", policy.allowMethods, "access-control-request-method");
  tell("access-control-allow-headers", policy.allowHeaders, "access-control-request-headers");
  if (policy.maxAge !== "") headers.set("access-control-max-age", policy.maxAge);
  const asksPrivate = asked.getJoined("access-control-request-private-network") === "true";
  if (policy.allowPrivateNetworkAccess === true && asksPrivate) {
    headers.set("access-control-allow-private-network", "true");
  }
  return headers;
}
