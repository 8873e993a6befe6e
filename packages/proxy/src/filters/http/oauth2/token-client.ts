// Calls of the token endpoint: a code or a refresh token for tokens (RFC 6749 §4.1.3, §6), over the clusters that
// traffic uses.
import { HeaderMap } from "../../../http/header-map.ts";
import type { DataPath } from "../../../worker/data-path.ts";
import type { AsyncCall } from "../../../upstream/async-call.ts";
import { type AsyncResult, sendAsyncRequest } from "../../../upstream/async-client.ts";
import type { OAuth2Config } from "./oauth2-config.ts";

export interface Tokens {
  readonly accessToken: string;
  /** Empty when there is none, as the refresh token. */
  readonly idToken: string;
  readonly refreshToken: string;
  readonly expiresSeconds: number;
}

/** `reason` goes to log and code details; it holds nothing that the endpoint or the browser sent. */
export type TokenResult =
  | { readonly ok: true; readonly tokens: Tokens }
  | { readonly ok: false; readonly reason: string };

export interface CodeExchange {
  readonly code: string;
  readonly redirectUri: string;
  readonly codeVerifier: string;
}

/** More than any set of tokens that cookies could hold. */
const maxTokenResponseBytes = 64 * 1024;

export function exchangeCode(
  config: OAuth2Config,
  exchange: CodeExchange,
  dataPath: DataPath,
  onResult: (result: TokenResult) => void,
): AsyncCall {
  return askForTokens(
    config,
    {
      grant_type: "authorization_code",
      code: exchange.code,
      redirect_uri: exchange.redirectUri,
      code_verifier: exchange.codeVerifier,
    },
    dataPath,
    onResult,
  );
}

export function refreshTokens(
  config: OAuth2Config,
  refreshToken: string,
  dataPath: DataPath,
  onResult: (result: TokenResult) => void,
): AsyncCall {
  return askForTokens(config, { grant_type: "refresh_token", refresh_token: refreshToken }, dataPath, onResult);
}

function askForTokens(
  config: OAuth2Config,
  grant: Readonly<Record<string, string>>,
  dataPath: DataPath,
  onResult: (result: TokenResult) => void,
): AsyncCall {
  const { tokenEndpoint, authentication, clientId } = config;
  const body = new URLSearchParams(grant);
  const headers = HeaderMap.of([
    ["content-type", "application/x-www-form-urlencoded"],
    ["accept", "application/json"],
  ]);
  const secret = config.clientSecret()?.toString("utf8") ?? "";
  if (authentication === "basic_auth") {
    // RFC 6749 §2.3.1: both are form-encoded first. Envoy leaves that out, which matters to few characters only.
    const pair = `${formEncoded(clientId)}:${formEncoded(secret)}`;
    headers.set("authorization", `Basic ${Buffer.from(pair).toString("base64")}`);
  } else {
    body.set("client_id", clientId);
    if (authentication === "url_encoded_body") body.set("client_secret", secret);
  }
  const { scheme, authority, path, timeoutMs, retries } = tokenEndpoint;
  const request = { method: "POST", scheme, authority, path, headers, body: Buffer.from(body.toString()) };
  const options = { timeoutMs, maxResponseBytes: maxTokenResponseBytes, retries };
  return sendAsyncRequest(tokenEndpoint.cluster, request, options, dataPath, (result) => {
    onResult(readTokens(result, config.defaultExpiresSeconds));
  });
}

function formEncoded(text: string): string {
  return new URLSearchParams({ t: text }).toString().slice(2);
}

function readTokens(result: AsyncResult, defaultExpiresSeconds: number): TokenResult {
  if (!result.ok) return refused(`Failed to get access token due to HTTP request failure: ${result.failure}`);
  const { status, body } = result.response;
  if (status !== 200) return refused(`Failed to get access token: response code: ${status}`);
  const json = parseObject(body.toString("utf8"));
  if (json === undefined) return refused("Failed to parse oauth response body");
  const accessToken = headerText(json["access_token"]);
  if (accessToken === "") return refused("No access token found in the token exchange response");
  const expires = json["expires_in"] === undefined ? defaultExpiresSeconds : Math.floor(Number(json["expires_in"]));
  if (!(expires > 0) || !Number.isSafeInteger(expires)) {
    return refused("No default or explicit access token expiration found in the token exchange response");
  }
  const idToken = headerText(json["id_token"]);
  const refreshToken = headerText(json["refresh_token"]);
  return { ok: true, tokens: { accessToken, idToken, refreshToken, expiresSeconds: expires } };
}

function refused(reason: string): TokenResult {
  return { ok: false, reason };
}

function parseObject(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const json: unknown = JSON.parse(text);
    return typeof json === "object" && json !== null ? (json as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}

/** Tokens become header values: what could not stand there is none (RFC 6749 appendix A.12: visible characters). */
function headerText(value: unknown): string {
  return typeof value === "string" && /^[\x20-\x7e]*$/.test(value) ? value : "";
}

/**
 * Claims of a JWT that came straight from its issuer, so that its signature need not be looked at (OpenID Connect Core
 * §3.1.3.7).
 */
export function claimsOf(jwt: string): Readonly<Record<string, unknown>> | undefined {
  const parts = jwt.split(".");
  return parts.length === 3 ? parseObject(Buffer.from(parts[1]!, "base64url").toString("utf8")) : undefined;
}
