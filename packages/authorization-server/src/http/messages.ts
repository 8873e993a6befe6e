// Requests and answers as the endpoints see them: plain values, so that an endpoint is a function and HTTP is an
// adapter.
import type { IncomingHttpHeaders } from "node:http";

export interface EndpointRequest {
  readonly method: string;
  /** Undecoded, without `?`. */
  readonly query: string;
  readonly headers: IncomingHttpHeaders;
  /** The body as latin1 text, one character a byte. Empty when there was none. */
  readonly body: string;
  /** The user agent's address, seen through trusted proxies only. */
  readonly address: string;
}

export type AnswerHeaders = Readonly<Record<string, string | readonly string[]>>;

export interface Answer {
  readonly status: number;
  readonly headers: AnswerHeaders;
  readonly body: string;
}

/** RFC 6749 §5.1: what carries tokens, or might, is kept by no cache. */
export const noStore: Readonly<Record<string, string>> = { "cache-control": "no-store", pragma: "no-cache" };

/** The content type is the seed's, to the letter. */
export const jsonHeaders: Readonly<Record<string, string>> = {
  "content-type": "application/json;charset=UTF-8",
  ...noStore,
};

export function json(status: number, body: unknown, headers: AnswerHeaders = {}): Answer {
  return { status, headers: { ...jsonHeaders, ...headers }, body: JSON.stringify(body) };
}

/** A redirect within this server: 303, so that a form's credentials are never sent on (RFC 9700 §4.12). */
export function seeOther(location: string, headers: AnswerHeaders = {}): Answer {
  return {
    status: 303,
    headers: { location, ...noStore, "referrer-policy": "no-referrer", ...headers },
    body: "",
  };
}

/** A redirect to a client: 302, as the seed says. */
export function found(location: string, headers: AnswerHeaders = {}): Answer {
  return {
    status: 302,
    headers: { location, ...noStore, "referrer-policy": "no-referrer", ...headers },
    body: "",
  };
}

/** RFC 6749 §3.1 and §3.2: a form, and nothing else. */
export function isForm(request: EndpointRequest): boolean {
  const type = request.headers["content-type"];
  return type !== undefined && /^application\/x-www-form-urlencoded *(;|$)/i.test(type);
}
