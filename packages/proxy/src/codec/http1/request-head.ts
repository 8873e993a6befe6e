// The head of a request: request line, fields and what they say of the body. Strict by RFC 9112; where Envoy refuses,
// the same status and response-code details are given.
import type { HeadFault, HeadReader } from "./head-reader.ts";
import { HeaderMap } from "../../http/header-map.ts";
import type { RequestHead } from "../../http/message.ts";
import { HttpProtocolError } from "../stream-codec.ts";
import { isConnectTarget, isHostField, isTargetAuthority } from "./authority.ts";
import { removeNominatedFields } from "./connection-options.ts";
import { contentLengthBytes, hasToken, type HeadFields, readFields } from "./head-fields.ts";

/** What the server connection must know of a request beyond its head. */
export interface RequestFraming {
  readonly head: RequestHead;
  /** Bytes of the body; -1 = chunked. */
  readonly bodyBytes: number;
  readonly keepAlive: boolean;
  /** Lower-case protocol that the client asks to upgrade to, `connect` for CONNECT, empty for none. */
  readonly upgrade: string;
  readonly expectContinue: boolean;
}

export interface RequestHeadLimits {
  readonly maxFieldCount: number;
  readonly acceptHttp10: boolean;
  readonly allowAbsoluteUrl: boolean;
}

// The methods that Envoy's HTTP/1 codec knows; others are a codec error there too.
const methods = new Set(
  (
    "ACL BIND CHECKOUT CONNECT COPY DELETE GET HEAD LINK LOCK MERGE MKACTIVITY MKCALENDAR MKCOL MOVE MSEARCH NOTIFY " +
    "OPTIONS PATCH POST PROPFIND PROPPATCH PURGE PUT REBIND REPORT SEARCH SOURCE SUBSCRIBE TRACE UNBIND UNLINK UNLOCK " +
    "UNSUBSCRIBE"
  ).split(" "),
);

// Visible ASCII, as Envoy; RFC 3986 has fewer characters, but browsers send some of the others in queries.
const targetPattern = /^[\x21-\x7e]+$/;
const absoluteFormPattern = /^([A-Za-z][-+.A-Za-z0-9]*):\/\/([^/?#]*)(.*)$/;

/**
 * Reads the head at the beginning of `text`: request line and field lines up to `end`, just behind the CRLF of the last
 * one. A broken head gives the error that the client is answered with.
 */
export function parseRequestHead(
  text: string,
  end: number,
  limits: RequestHeadLimits,
  fields: HeadFields,
): RequestFraming | HttpProtocolError {
  const lineEnd = text.indexOf("\r\n");
  const methodEnd = text.indexOf(" ");
  const targetEnd = text.indexOf(" ", methodEnd + 1);
  const method = text.slice(0, methodEnd > 0 && methodEnd < lineEnd ? methodEnd : lineEnd);
  if (!methods.has(method) || methodEnd < 0 || methodEnd > lineEnd) return badRequest(firstFault(text, lineEnd));
  const hasVersion = targetEnd > 0 && targetEnd < lineEnd;
  const target = text.slice(methodEnd + 1, hasVersion ? targetEnd : lineEnd);
  if (!targetPattern.test(target)) return badRequest(firstFault(text, lineEnd));
  const isHttp11 = hasVersion && lineEnd - targetEnd === 9 && text.startsWith("HTTP/1.1", targetEnd + 1);
  let isHttp10 = false;
  if (!isHttp11) {
    const version = hasVersion ? text.slice(targetEnd + 1, lineEnd) : "HTTP/0.9";
    if (!/^HTTP\/\d\.\d$/.test(version)) return badRequest(firstFault(text, lineEnd));
    isHttp10 = version === "HTTP/1.0";
    if (!isHttp10 || !limits.acceptHttp10) return new HttpProtocolError(426, "low_version");
  }

  fields.reset();
  const fault = readFields(text, lineEnd + 2, end, limits.maxFieldCount, fields);
  if (fault !== undefined) return new HttpProtocolError(fault === "http1.too_many_headers" ? 431 : 400, fault);

  let scheme = "http";
  let authority = fields.host;
  let path = target;
  if (target.charCodeAt(0) !== 47 /* / */) {
    const form = readOtherTarget(method, target, limits);
    if (form instanceof HttpProtocolError) return form;
    scheme = form.scheme;
    path = form.path;
    if (form.authority !== undefined) authority = form.authority;
  } else if (method === "CONNECT") {
    return badRequest("http1.invalid_url");
  }
  if (fields.hostCount > 1) return badRequest("http1.multiple_host_headers");
  // Beside a target that has a host too, where it counts for nothing (RFC 9112 §3.2).
  if (!isHostField(fields.host)) return badRequest("http.invalid_authority");
  const head: RequestHead = {
    method,
    scheme,
    authority,
    path,
    protocol: isHttp11 ? "HTTP/1.1" : "HTTP/1.0",
    headers: new HeaderMap(fields.entries),
    hasHost: fields.hostCount > 0 || authority !== "",
  };
  return frameRequest(head, isHttp10, fields);
}

function badRequest(details: string): HttpProtocolError {
  return new HttpProtocolError(400, details);
}

/** Names the fault of a broken request line: a control character if there is one, as Envoy does. */
function firstFault(text: string, lineEnd: number): string {
  const line = text.slice(0, lineEnd);
  if (line.includes("\n")) return "http1.bare_lf";
  if (line.includes("\r")) return "http1.bare_cr";
  // oxlint-disable-next-line no-control-regex -- control characters are what is being looked for
  return /[\0-\x1f\x7f]/.test(line) ? "http1.invalid_characters" : "http1.codec_error";
}

/** RFC 9112 §3.2: authority-form for CONNECT, absolute-form, asterisk-form for OPTIONS. */
function readOtherTarget(
  method: string,
  target: string,
  limits: RequestHeadLimits,
): { scheme: string; authority: string | undefined; path: string } | HttpProtocolError {
  if (method === "CONNECT") {
    if (!isConnectTarget(target)) return badRequest("http1.invalid_url");
    return { scheme: "http", authority: target, path: "" };
  }
  if (target === "*") {
    if (method !== "OPTIONS") return badRequest("http1.invalid_url");
    return { scheme: "http", authority: undefined, path: "*" };
  }
  const match = limits.allowAbsoluteUrl ? absoluteFormPattern.exec(target) : null;
  if (match === null) return badRequest("http1.codec_error");
  const scheme = match[1]!.toLowerCase();
  // A scheme that the connection is not would make the request pass for a secure one.
  if (scheme === "https") return new HttpProtocolError(403, "http1.https_url_on_plaintext_connection");
  if (scheme !== "http") return badRequest("http1.invalid_scheme");
  const authority = match[2]!;
  // An http URI without a host is invalid, and user information in it is (RFC 9110 §4.2.1, §4.2.4).
  if (!isTargetAuthority(authority)) return badRequest("http1.invalid_url");
  const rest = match[3]!;
  return { scheme, authority, path: rest.startsWith("/") ? rest : `/${rest}` };
}

/** RFC 9112 §6: how long the body is, and what the connection-level fields ask for. */
function frameRequest(head: RequestHead, isHttp10: boolean, fields: HeadFields): RequestFraming | HttpProtocolError {
  let bodyBytes = 0;
  if (fields.transferEncodingCount > 0) {
    // Two codings or two fields that disagree between proxies are how requests are smuggled (RFC 9112 §6.1, §11.2).
    if (fields.transferEncodingCount > 1 || fields.transferEncoding.toLowerCase() !== "chunked") {
      return new HttpProtocolError(501, "http1.invalid_transfer_encoding");
    }
    if (fields.contentLengthCount > 0) return badRequest("http1.content_length_and_chunked_not_allowed");
    if (isHttp10) return badRequest("http1.transfer_encoding_not_allowed");
    bodyBytes = -1;
  } else if (fields.contentLengthCount > 0) {
    bodyBytes = fields.contentLengthCount > 1 ? -1 : contentLengthBytes(fields.contentLength);
    if (bodyBytes < 0) return badRequest("http1.codec_error");
  }
  let upgrade = "";
  if (head.method === "CONNECT") {
    // RFC 9110 §9.3.6: content of a CONNECT request has no meaning.
    if (bodyBytes !== 0) return badRequest("http1.body_disallowed");
    upgrade = "connect";
  }
  const connection = fields.connection;
  let keepAlive = !isHttp10;
  if (connection !== "") {
    if (hasToken(connection, "close")) keepAlive = false;
    else if (isHttp10 && hasToken(connection, "keep-alive")) keepAlive = true;
    // HTTP/1.0 knows no upgrade (RFC 9110 §7.8).
    if (fields.upgrade !== "" && upgrade === "" && !isHttp10 && hasToken(connection, "upgrade")) {
      upgrade = fields.upgrade.toLowerCase();
      // A client that offers HTTP/2 is simply answered in HTTP/1.1 (RFC 9113 removed the offer; Envoy strips it). One
      // that sends a body is too: what an upstream that does not upgrade reads behind an unframed body is another
      // request.
      if (upgrade === "h2c" || bodyBytes !== 0) upgrade = "";
    }
    if (!removeNominatedFields(connection, head.headers.entries, "client")) {
      return badRequest("http1.connection_header_rejected");
    }
  }
  // Only `trailers` may pass a proxy; other transfer codings are between two hops (RFC 9110 §10.1.4).
  if (fields.te !== "" && hasToken(fields.te, "trailers")) head.headers.entries.push("te", "trailers");
  const expectContinue = fields.expect !== "" && fields.expect.toLowerCase() === "100-continue" && !isHttp10;
  if (expectContinue) head.headers.remove("expect");
  return { head, bodyBytes, keepAlive, upgrade, expectContinue };
}

/** What is answered to a head that could not be read; what is wrong with a line before comes first. */
export function requestHeadError(
  fault: HeadFault,
  { text, end }: HeadReader,
  limits: RequestHeadLimits,
  fields: HeadFields,
): HttpProtocolError {
  if (fault === "no_head") return new HttpProtocolError(400, "http1.codec_error");
  if (fault === "too_large") return new HttpProtocolError(431, "http1.headers_too_large");
  if (fault === "bare_lf") return new HttpProtocolError(400, "http1.bare_lf");
  const framing = parseRequestHead(text, end, limits, fields);
  return framing instanceof HttpProtocolError ? framing : new HttpProtocolError(431, "http1.too_many_headers");
}
