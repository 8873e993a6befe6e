// Not by an import, which reads every export and so loads fetch's library (ARCHITECTURE.md, "What makes it start quickly").
const { STATUS_CODES } = process.getBuiltinModule("node:http");
// Status lines as text, ready to be written, with the reason phrases of RFC 9110 and the IANA registry as Envoy sends them.

const lines: (string | undefined)[] = [];

export function reasonPhrase(status: number): string {
  return STATUS_CODES[status] ?? "Unknown";
}

/** `HTTP/1.1 200 OK` with its CRLF. */
export function statusLine(status: number): string {
  return (lines[status] ??= `HTTP/1.1 ${status} ${reasonPhrase(status)}\r\n`);
}

/** RFC 9112 §6.1, §6.3: neither a body nor a transfer coding goes with 1xx, 204 and 304. */
export function mayHaveBody(status: number): boolean {
  return status !== 204 && status !== 304 && status >= 200;
}
