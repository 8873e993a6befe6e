// The head of a response: status line, fields and what they say of the body (RFC 9112 §4, §6.3). As strict as for
// requests: a back end that another proxy would read differently is an upstream protocol error.
import { HeaderMap } from "../../http/header-map.ts";
import type { ResponseHead } from "../../http/message.ts";
import { removeNominatedFields } from "./connection-options.ts";
import { contentLengthBytes, hasToken, type HeadFields, readFields } from "./head-fields.ts";

/** Body lengths beside a number of bytes. */
export const bodyChunked = -1;
export const bodyUntilClose = -2;
/** The connection turns into a tunnel behind this head. */
export const bodyTunnel = -3;

export class ResponseFraming {
  readonly head: ResponseHead;
  /** Bytes, or one of the constants above. */
  readonly bodyBytes: number;
  readonly keepAlive: boolean;
  /** `Upgrade` of a 101, lower-case. */
  readonly upgrade: string;

  constructor(head: ResponseHead, bodyBytes: number, keepAlive: boolean, upgrade: string) {
    this.head = head;
    this.bodyBytes = bodyBytes;
    this.keepAlive = keepAlive;
    this.upgrade = upgrade;
  }
}

/**
 * Reads the head at the beginning of `text`, up to `end`, just behind the CRLF of its last field line. `requestMethod`
 * decides whether a body follows; `upgradeAsked` says that the request asked for a tunnel. Undefined when the head is
 * broken.
 */
export function parseResponseHead(
  text: string,
  end: number,
  requestMethod: string,
  upgradeAsked: boolean,
  maxFieldCount: number,
  fields: HeadFields,
): ResponseFraming | undefined {
  // `HTTP/1.1 200 OK`: the reason phrase may be missing, its space as well (many servers leave it out).
  if (!text.startsWith("HTTP/1.")) return undefined;
  const minor = text.charCodeAt(7) - 48;
  if ((minor !== 0 && minor !== 1) || text.charCodeAt(8) !== 32) return undefined;
  const status = digit(text, 9) * 100 + digit(text, 10) * 10 + digit(text, 11);
  const behind = text.charCodeAt(12);
  if (!(status >= 100 && status <= 999) || (behind !== 32 && behind !== 13)) return undefined;
  const lineEnd = text.indexOf("\r\n", 12);
  // oxlint-disable-next-line no-control-regex -- control characters are what is being looked for
  if (lineEnd > 13 && /[\0-\x08\x0a-\x1f\x7f]/.test(text.slice(13, lineEnd))) return undefined;
  if (lineEnd < 12) return undefined;
  fields.reset();
  if (readFields(text, lineEnd + 2, end, maxFieldCount, fields) !== undefined) return undefined;
  return frameResponse(status, minor === 0, requestMethod, upgradeAsked, fields);
}

/** NaN for anything else. */
function digit(text: string, at: number): number {
  const value = text.charCodeAt(at) - 48;
  return value >= 0 && value <= 9 ? value : Number.NaN;
}

function frameResponse(
  status: number,
  isHttp10: boolean,
  requestMethod: string,
  upgradeAsked: boolean,
  fields: HeadFields,
): ResponseFraming | undefined {
  const connection = fields.connection;
  let keepAlive = !isHttp10;
  if (connection !== "") {
    if (hasToken(connection, "close")) keepAlive = false;
    else if (isHttp10 && hasToken(connection, "keep-alive")) keepAlive = true;
    if (!removeNominatedFields(connection, fields.entries, "host")) return undefined;
  }
  let bodyBytes = bodyUntilClose;
  if (fields.transferEncodingCount > 0) {
    if (fields.transferEncodingCount > 1 || fields.transferEncoding.toLowerCase() !== "chunked") return undefined;
    if (fields.contentLengthCount > 0 || isHttp10) return undefined;
    bodyBytes = bodyChunked;
  } else if (fields.contentLengthCount > 0) {
    if (fields.contentLengthCount > 1) return undefined;
    bodyBytes = contentLengthBytes(fields.contentLength);
    if (bodyBytes < 0) return undefined;
  }
  const head: ResponseHead = { status, headers: new HeaderMap(fields.entries) };
  if (upgradeAsked && (status === 101 || (requestMethod === "CONNECT" && status >= 200 && status < 300))) {
    // What follows is no content, and a length would tell the next hop otherwise (RFC 9110 §8.6, §9.3.6).
    head.headers.remove("content-length");
    return new ResponseFraming(head, bodyTunnel, false, fields.upgrade.toLowerCase());
  }
  // RFC 9110 §8.6, §15.3.5: neither framing field may stand in a 1xx or 204; Envoy refuses them too.
  if (status < 200 || status === 204) {
    if (fields.transferEncodingCount > 0 || (fields.contentLengthCount > 0 && bodyBytes !== 0)) return undefined;
    // An upgrade that nobody asked for would hand the connection to the back end's own protocol.
    if (status === 101) return undefined;
    head.headers.remove("content-length");
    bodyBytes = 0;
  } else if (status === 304 || requestMethod === "HEAD") {
    bodyBytes = 0;
  }
  return new ResponseFraming(head, bodyBytes, keepAlive && bodyBytes !== bodyUntilClose, "");
}
