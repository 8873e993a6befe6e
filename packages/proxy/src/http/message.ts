// The heads of a request and a response as filters, routes and codecs share them; no codec shows through.
import { HeaderMap } from "./header-map.ts";

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
  /** False when an HTTP/1 request came without a Host field: a 1.1 request is then refused (RFC 9112 §3.2). */
  readonly hasHost?: boolean;
  /** Lower-case protocol of an upgrade that the client asks for, `connect` for CONNECT; undefined otherwise. */
  upgrade?: string | undefined;
  /** Without `host`, `:pseudo` and hop-by-hop headers. */
  readonly headers: HeaderMap;
}

export interface ResponseHead {
  status: number;
  /** Of a 101: the protocol that the connection changes to. */
  upgrade?: string | undefined;
  readonly headers: HeaderMap;
}

/** What the proxy's own requests say that they are; the pool speaks what its hosts do. */
export const ownRequestProtocol: Protocol = "HTTP/1.1";

/**
 * Stands for the request where there is none, of connections and of their errors: whatever is looked for in it is not
 * there.
 */
export const noRequest: RequestHead = {
  method: "",
  scheme: "",
  authority: "",
  path: "",
  protocol: ownRequestProtocol,
  headers: new HeaderMap(),
  hasHost: false,
  upgrade: undefined,
};

/** Behind such an answer to `method` bytes pass raw (RFC 9110 §7.8, §9.3.6). */
export function isTunnelStart(method: string, head: ResponseHead): boolean {
  return head.status === 101 || (method === "CONNECT" && head.status >= 200 && head.status < 300);
}
