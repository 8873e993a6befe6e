// Status lines as text, ready to be written.
import { reasonPhrase } from "../../http/reason-phrase.ts";

const lines: (string | undefined)[] = [];

/** `HTTP/1.1 200 OK` with its CRLF. */
export function statusLine(status: number): string {
  return (lines[status] ??= `HTTP/1.1 ${status} ${reasonPhrase(status)}\r\n`);
}

/** RFC 9112 §6.1, §6.3: neither a body nor a transfer coding goes with 1xx, 204 and 304. */
export function mayHaveBody(status: number): boolean {
  return status !== 204 && status !== 304 && status >= 200;
}
