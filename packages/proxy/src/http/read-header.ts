// How the value of a header is read whose name configuration gives.
import type { RequestHead, ResponseHead } from "./message.ts";

/** Value of a header or pseudo-header (`:method`, `:path`, `:authority`, `:scheme`); repeated ones joined by commas. */
export function requestHeader(name: string): (request: RequestHead) => string | undefined {
  const lower = name.toLowerCase();
  switch (lower) {
    case ":method":
      return (request) => request.method;
    case ":path":
      return (request) => (request.path === "" ? undefined : request.path);
    case ":authority":
    case "host":
      return (request) => request.authority;
    case ":scheme":
      return (request) => request.scheme;
    default:
      return (request) => request.headers.getJoined(lower);
  }
}

export function responseHeader(name: string): (response: ResponseHead) => string | undefined {
  const lower = name.toLowerCase();
  if (lower === ":status") return (response) => String(response.status);
  return (response) => response.headers.getJoined(lower);
}
