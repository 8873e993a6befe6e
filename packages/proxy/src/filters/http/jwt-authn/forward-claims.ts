// What the application and later filters learn of a verified token: headers with its payload or single claims, and
// dynamic metadata (JwtProvider.forward_payload_header, claim_to_headers, payload_in_metadata, header_in_metadata).
import type { JwtClaimToHeader, JwtProvider } from "@tulle/xds/envoy/extensions/filters/http/jwt_authn/v3/config_pb";
import type { HeaderMap } from "../../../http/header-map.ts";
import { hasControlCharacter, utf8AsLatin1 } from "../../../http/header-value.ts";
import type { Jwt } from "./parse-jwt.ts";

type Json = Readonly<Record<string, unknown>>;

/** Headers by claims; a claim that no header can carry leaves its header out. */
export function forwardInHeaders(provider: JwtProvider, jwt: Jwt, headers: HeaderMap): void {
  if (provider.forwardPayloadHeader !== "") {
    headers.append(provider.forwardPayloadHeader.toLowerCase(), forwardedPayload(provider, jwt));
  }
  for (const rule of provider.claimToHeaders) {
    const value = headerValue(claimAt(jwt.payload, claimPath(rule)));
    if (value !== undefined) headers.append(rule.headerName.toLowerCase(), value);
  }
}

/** Adds to `metadata` what the provider leaves there. */
export function forwardInMetadata(provider: JwtProvider, jwt: Jwt, metadata: Record<string, unknown>): void {
  if (provider.headerInMetadata !== "") metadata[provider.headerInMetadata] = jwt.header;
  if (provider.payloadInMetadata === "") return;
  const listed = provider.normalizePayloadInMetadata?.spaceDelimitedClaims ?? [];
  metadata[provider.payloadInMetadata] = listed.length === 0 ? jwt.payload : listedPayload(provider, jwt, listed);
}

/** Made once for a token that is kept. */
const listedPayloads = new WeakMap<Jwt, Map<JwtProvider, Json>>();
/** Others with a different list may see the same token; their number follows the configuration's changes. */
const maxProvidersOfToken = 8;

function listedPayload(provider: JwtProvider, jwt: Jwt, names: readonly string[]): Json {
  let byProvider = listedPayloads.get(jwt);
  if (byProvider === undefined) listedPayloads.set(jwt, (byProvider = new Map()));
  let payload = byProvider.get(provider);
  if (payload === undefined) {
    if (byProvider.size >= maxProvidersOfToken) byProvider.clear();
    byProvider.set(provider, (payload = withLists(jwt.payload, names)));
  }
  return payload;
}

function forwardedPayload(provider: JwtProvider, { payloadBase64Url }: Jwt): string {
  if (!provider.padForwardPayloadHeader) return payloadBase64Url;
  return payloadBase64Url.padEnd(Math.ceil(payloadBase64Url.length / 4) * 4, "=");
}

/** `scope: "a b"` becomes `scope: ["a", "b"]`. */
function withLists(payload: Json, names: readonly string[]): Json {
  const result: Record<string, unknown> = { ...payload };
  for (const name of names) {
    const value = Object.hasOwn(payload, name) ? payload[name] : undefined;
    if (typeof value !== "string") continue;
    const parts = value.split(" ").filter((part) => part !== "");
    if (parts.length > 0) result[name] = parts;
  }
  return result;
}

function claimPath(rule: JwtClaimToHeader): readonly string[] {
  return rule.claimPath.length > 0 ? rule.claimPath.map(({ key }) => key) : rule.claimName.split(".");
}

function claimAt(payload: Json, path: readonly string[]): unknown {
  let value: unknown = payload;
  for (const key of path) {
    if (typeof value !== "object" || value === null || Array.isArray(value) || !Object.hasOwn(value, key))
      return undefined;
    value = (value as Json)[key];
  }
  return value;
}

function headerValue(claim: unknown): string | undefined {
  const text = claimText(claim);
  return text === undefined || text === "" || hasControlCharacter(text) ? undefined : utf8AsLatin1(text);
}

function claimText(claim: unknown): string | undefined {
  switch (typeof claim) {
    case "string":
      return claim;
    case "boolean":
      return String(claim);
    case "number":
      // Envoy: integers as such, anything else with six digits.
      if (!Number.isInteger(claim)) return claim.toFixed(6);
      return claim >= 0 && claim < 2 ** 64 ? String(BigInt(claim)) : `${BigInt(claim)}.000000`;
    case "object":
      return claim === null ? undefined : Buffer.from(JSON.stringify(claim)).toString("base64");
    default:
      return undefined;
  }
}
