// Status lines as text, ready to be written, with the reason phrases of RFC 9110 and the IANA registry as Envoy sends them.
import { STATUS_CODES } from "node:http";

const lines: (string | undefined)[] = [];

export function reasonPhrase(status: number): string {
  return STATUS_CODES[status] ?? "Unknown";
}

/** `HTTP/1.1 200 OK` with its CRLF. */
export function statusLine(status: number): string {
  return (lines[status] ??= `HTTP/1.1 ${status} ${reasonPhrase(status)}\r\n`);
}
