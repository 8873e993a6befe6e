// Where a request may carry tokens: headers, query parameters, cookies (JwtProvider.from_headers, from_params,
// from_cookies).
import type { JwtProvider } from "@tulle/xds/envoy/extensions/filters/http/jwt_authn/v3/config_pb";
import type { RequestHead } from "../../../http/message.ts";

export interface FoundToken {
  readonly token: string;
  /** Whether a provider of that issuer looks for tokens here. */
  isIssuerAllowed(issuer: string): boolean;
  /** Takes the token out of the request. */
  remove(request: RequestHead): void;
}

/** Issuers of the providers that name a location; a provider without one takes tokens of all. */
class Issuers {
  readonly #names = new Set<string>();

  add(issuer: string): void {
    this.#names.add(issuer);
  }

  allow(issuer: string): boolean {
    return this.#names.has("") || this.#names.has(issuer);
  }
}

interface HeaderLocation {
  readonly name: string;
  readonly prefix: string;
  readonly issuers: Issuers;
}

const tokenCharacter = /[A-Za-z0-9_.-]/;

export class TokenLocations {
  readonly #headers: readonly HeaderLocation[];
  readonly #parameters: readonly (readonly [string, Issuers])[];
  readonly #cookies: readonly (readonly [string, Issuers])[];
  /** Headers that only verified tokens may fill: what the client sent there goes. */
  readonly #ownHeaders: ReadonlySet<string>;

  constructor(providers: readonly JwtProvider[]) {
    const headers = new Map<string, HeaderLocation>();
    const parameters = new Map<string, Issuers>();
    const cookies = new Map<string, Issuers>();
    const addHeader = (header: string, prefix: string, issuer: string): void => {
      const name = header.toLowerCase();
      const key = name + prefix;
      let location = headers.get(key);
      if (location === undefined) headers.set(key, (location = { name, prefix, issuers: new Issuers() }));
      location.issuers.add(issuer);
    };
    for (const { issuer, fromHeaders, fromParams, fromCookies } of providers) {
      for (const { name, valuePrefix } of fromHeaders) addHeader(name, valuePrefix, issuer);
      for (const name of fromParams) addIssuer(parameters, name, issuer);
      for (const name of fromCookies) addIssuer(cookies, name, issuer);
      if (fromHeaders.length + fromParams.length + fromCookies.length > 0) continue;
      addHeader("authorization", "Bearer ", issuer);
      addIssuer(parameters, "access_token", issuer);
    }
    this.#headers = sorted(headers).map(([, location]) => location);
    this.#parameters = sorted(parameters);
    this.#cookies = sorted(cookies);
    this.#ownHeaders = new Set(
      providers
        .flatMap(({ forwardPayloadHeader, claimToHeaders }) => [
          forwardPayloadHeader,
          ...claimToHeaders.map(({ headerName }) => headerName),
        ])
        .map((name) => name.toLowerCase())
        .filter((name) => name !== ""),
    );
  }

  /** Takes out what looks as if a verified token had put it there. */
  sanitize(request: RequestHead): void {
    if (this.#ownHeaders.size > 0) request.headers.removeWhere((name) => this.#ownHeaders.has(name));
  }

  /** In Envoy's order: headers, parameters, cookies, each by name. */
  find(request: RequestHead): readonly FoundToken[] {
    const found: FoundToken[] = [];
    for (const location of this.#headers) findInHeader(request, location, found);
    if (this.#parameters.length > 0) findInQuery(request, this.#parameters, found);
    if (this.#cookies.length > 0) findInCookies(request, this.#cookies, found);
    return found;
  }
}

function addIssuer(locations: Map<string, Issuers>, name: string, issuer: string): void {
  let issuers = locations.get(name);
  if (issuers === undefined) locations.set(name, (issuers = new Issuers()));
  issuers.add(issuer);
}

function sorted<T>(locations: ReadonlyMap<string, T>): readonly (readonly [string, T])[] {
  return [...locations].sort(([a], [b]) => (a < b ? -1 : 1));
}

/** Values of a header, each by itself; of Authorization, which has one value, what Envoy makes of several. */
function headerValues({ headers }: RequestHead, name: string): readonly string[] {
  if (name === "authorization") {
    const joined = headers.getJoined(name);
    return joined === undefined ? [] : [joined];
  }
  const { entries } = headers;
  const values: string[] = [];
  for (let index = 0; index < entries.length; index += 2) {
    if (entries[index] === name) values.push(entries[index + 1]!);
  }
  return values;
}

function findInHeader(request: RequestHead, { name, prefix, issuers }: HeaderLocation, found: FoundToken[]): void {
  for (const whole of headerValues(request, name)) {
    let value = whole;
    if (prefix !== "") {
      const at = value.indexOf(prefix);
      if (at < 0) continue;
      const rest = value.slice(at + prefix.length);
      const start = rest.search(tokenCharacter);
      if (start >= 0) value = rest.slice(start);
    }
    found.push({
      token: value,
      isIssuerAllowed: (issuer) => issuers.allow(issuer),
      remove: ({ headers }) => headers.remove(name),
    });
  }
}

function findInQuery(
  request: RequestHead,
  parameters: readonly (readonly [string, Issuers])[],
  found: FoundToken[],
): void {
  const query = queryOf(request.path);
  if (query === "") return;
  const pairs = query.split("&").map(parsePair);
  for (const [name, issuers] of parameters) {
    const pair = pairs.find(([one]) => one === name);
    if (pair === undefined) continue;
    found.push({
      token: pair[1],
      isIssuerAllowed: (issuer) => issuers.allow(issuer),
      remove: (head) => removeParameter(head, name),
    });
  }
}

function queryOf(path: string): string {
  const start = path.indexOf("?");
  return start < 0 ? "" : path.slice(start + 1);
}

function parsePair(pair: string): readonly [string, string] {
  const equals = pair.indexOf("=");
  return equals < 0
    ? [percentDecoded(pair), ""]
    : [percentDecoded(pair.slice(0, equals)), percentDecoded(pair.slice(equals + 1))];
}

function percentDecoded(text: string): string {
  return text.replaceAll(/%([0-9A-Fa-f]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
}

/** Leaves the rest of the query as it came, where Envoy sorts it and writes it anew, decoded. */
function removeParameter(request: RequestHead, name: string): void {
  const { path } = request;
  const start = path.indexOf("?");
  const kept = path
    .slice(start + 1)
    .split("&")
    .filter((pair) => parsePair(pair)[0] !== name);
  request.path = kept.length === 0 ? path.slice(0, start) : `${path.slice(0, start)}?${kept.join("&")}`;
}

function findInCookies(
  request: RequestHead,
  cookies: readonly (readonly [string, Issuers])[],
  found: FoundToken[],
): void {
  const { entries } = request.headers;
  const values = new Map<string, string>();
  for (let index = 0; index < entries.length; index += 2) {
    if (entries[index] !== "cookie") continue;
    for (const pair of entries[index + 1]!.split(";")) {
      const equals = pair.indexOf("=");
      if (equals < 0) continue;
      const name = pair.slice(0, equals).trim();
      if (!values.has(name)) values.set(name, unquoted(pair.slice(equals + 1).trim()));
    }
  }
  for (const [name, issuers] of cookies) {
    const token = values.get(name);
    if (token === undefined) continue;
    // Cookies stay, as in Envoy: what else is in the header belongs to the application.
    found.push({ token, isIssuerAllowed: (issuer) => issuers.allow(issuer), remove: () => undefined });
  }
}

function unquoted(value: string): string {
  return value.length >= 2 && value.startsWith('"') && value.endsWith('"') ? value.slice(1, -1) : value;
}
