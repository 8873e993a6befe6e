// How long a head is, as Envoy counts a map of headers: names and values, without what a codec puts around them.
import type { HeaderMap } from "./header-map.ts";
import type { RequestHead, ResponseHead } from "./message.ts";

export function headersBytes(headers: HeaderMap | undefined): number {
  return (headers?.entries ?? []).reduce((sum, part) => sum + part.length, 0);
}

export function requestHeadersBytes({ method, path, authority, scheme, headers }: RequestHead) {
  const pseudo = { ":method": method, ":path": path, ":authority": authority, ":scheme": scheme };
  const entries = Object.entries(pseudo).filter(([, value]) => value !== "");
  return entries.reduce((sum, [name, value]) => sum + name.length + value.length, headersBytes(headers));
}

export function responseHeadersBytes({ headers }: ResponseHead): number {
  return headersBytes(headers) + ":status".length + 3;
}
