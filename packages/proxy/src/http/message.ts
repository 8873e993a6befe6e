// The heads of a request and a response as filters, routes and codecs share them; no codec shows through.
import type { HeaderMap } from "./header-map.ts";

export type Protocol = "HTTP/1.0" | "HTTP/1.1" | "HTTP/2";

export interface RequestHead {
  method: string;
  /** `http` or `https`, from the transport or the absolute-form target. */
  scheme: string;
  /** Host and optional port as the client sent them; lower-casing is the matcher's affair. */
  authority: string;
  /** Path and query; for CONNECT the empty string. */
  path: string;
  readonly protocol: Protocol;
  /** Without `host`, `:pseudo` and hop-by-hop headers. */
  readonly headers: HeaderMap;
}

export interface ResponseHead {
  status: number;
  readonly headers: HeaderMap;
}
