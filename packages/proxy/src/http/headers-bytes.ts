// How long a head is, as Envoy counts a map of headers: names and values, without what a codec puts around them.
import type { HeaderMap } from "./header-map.ts";
import type { RequestHead, ResponseHead } from "./message.ts";

export function headersBytes(headers: HeaderMap | undefined): number {
  let bytes = 0;
  if (headers !== undefined) for (const part of headers.entries) bytes += part.length;
  return bytes;
}

/** What HTTP/1.1 puts around each field is its colon and its line end; blanks are not counted (Envoy). */
export const fieldFramingBytes = 3;

/** Of trailers of HTTP/1.1. */
export function fieldLineBytes(headers: HeaderMap): number {
  return headersBytes(headers) + (headers.entries.length / 2) * fieldFramingBytes;
}

export function requestHeadersBytes({ method, path, authority, scheme, headers }: RequestHead): number {
  const pseudo = [":method", method, ":path", path, ":authority", authority, ":scheme", scheme];
  let bytes = headersBytes(headers);
  for (let index = 0; index < pseudo.length; index += 2) {
    const value = pseudo[index + 1]!;
    if (value !== "") bytes += pseudo[index]!.length + value.length;
  }
  return bytes;
}

export function responseHeadersBytes({ headers }: ResponseHead): number {
  return headersBytes(headers) + ":status".length + 3;
}
