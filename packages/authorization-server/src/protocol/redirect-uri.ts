// What may be registered as a redirect URI, how a requested one is matched, and how an answer is put into its query.

const loopbackLiterals = new Set(["127.0.0.1", "[::1]"]);

export interface RedirectUriRules {
  /** `http://localhost` is a fair redirect only while the server itself is a development server under http. */
  readonly issuerIsHttp: boolean;
}

export interface RedirectUriOwner extends RedirectUriRules {
  /** A public client: programs on the owner's machine listen on a loopback address, under whatever port is free. */
  readonly nativeClient: boolean;
}

/**
 * An https address of the network, which nobody but its owner answers; a loopback address is whoever's who listens
 * there.
 */
export function isClaimedHttps(redirectUri: string): boolean {
  const { protocol, hostname } = new URL(redirectUri);
  const isLoopback = hostname === "localhost" || hostname.endsWith(".localhost") || /^127\.|^\[::1\]$/.test(hostname);
  return protocol === "https:" && !isLoopback;
}

/**
 * Why `text` cannot be registered, in words for its developer; undefined when it can (RFC 6749 §3.1.2, RFC 9700 §2.6).
 */
export function redirectUriProblem(text: string, rules: RedirectUriOwner): string | undefined {
  // oxlint-disable-next-line no-control-regex -- controls, spaces and raw non-ASCII are no URI characters
  if (/[\x00-\x20\x7f-\uffff"<>\\^`{|}]/.test(text)) return "has a character that a URI cannot hold";
  if (text.includes("#")) return "has a fragment";
  if (text.includes("*")) return "has a wildcard; register each URI in full";
  if (!URL.canParse(text)) return "is not an absolute URI";
  const url = new URL(text);
  if (url.username !== "" || url.password !== "" || /^[a-z]+:\/\/[^/?]*@/i.test(text)) return "has user information";
  if (url.protocol === "https:") return undefined;
  if (url.protocol === "http:") return httpProblem(url, rules);
  if (["javascript:", "data:", "vbscript:", "file:", "blob:", "about:", "ws:", "wss:", "ftp:"].includes(url.protocol))
    return `has the scheme ${url.protocol}`;
  // RFC 8252 §7.1: private-use schemes are reverse domain names, so that two applications do not claim the same one.
  if (!url.protocol.includes("."))
    return `has the scheme ${url.protocol} which is no reverse domain name (com.example.app:)`;
  return undefined;
}

function httpProblem(url: URL, rules: RedirectUriOwner): string | undefined {
  if (loopbackLiterals.has(url.hostname)) return undefined;
  // RFC 8252 §8.3 prefers the literals; several libraries of native applications know `localhost` alone.
  if (url.hostname === "localhost" && (rules.issuerIsHttp || rules.nativeClient)) return undefined;
  return "is http; use https. A program on its user's own machine uses http://127.0.0.1 or http://[::1], and http://localhost if its client is public (--public)";
}

/** Splits a loopback http URI around its port; undefined for every other URI. */
function withoutLoopbackPort(uri: string): string | undefined {
  const match = /^(http:\/\/(?:127\.0\.0\.1|\[::1\]|localhost))(?::([0-9]{1,5}))?((?:[/?].*)?)$/.exec(uri);
  if (match === null || Number(match[2] ?? 80) > 65_535) return undefined;
  return `${match[1]}${match[3]}`;
}

/** Exact comparison of strings; only the port of a native client's loopback URI varies (RFC 9700 §4.1.3). */
export function redirectUriMatches(registered: string, requested: string, nativeClient: boolean): boolean {
  if (registered === requested) return true;
  if (!nativeClient) return false;
  const registeredRest = withoutLoopbackPort(registered);
  return registeredRest !== undefined && registeredRest === withoutLoopbackPort(requested);
}

/** Appends answer parameters to the query that the URI has already (RFC 6749 §3.1.2). `state` is echoed undecoded. */
export function answerLocation(
  uri: string,
  answer: ReadonlyArray<readonly [string, string]>,
  rawState?: string,
): string {
  let query = "";
  for (const [name, value] of answer) query += `&${name}=${encodeURIComponent(value)}`;
  if (rawState !== undefined) query += `&state=${rawState}`;
  const mark = uri.indexOf("?");
  if (mark < 0) return `${uri}?${query.slice(1)}`;
  return mark === uri.length - 1 || uri.endsWith("&") ? uri + query.slice(1) : uri + query;
}

/** The `state` of a request in a form that is safe in a Location header and equal, once decoded, to what was sent. */
export function echoableState(raw: string | undefined, decoded: string | undefined): string | undefined {
  if (raw === undefined) return undefined;
  if (/^[\x21\x24\x25\x27-\x3b\x3d\x3f-\x5b\x5d\x5f\x61-\x7a\x7e]+$/.test(raw)) return raw;
  return decoded === undefined ? undefined : encodeURIComponent(decoded);
}
