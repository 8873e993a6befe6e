// Reason phrases of RFC 9110 and the IANA registry, as Envoy sends them in status lines and as bodies of its answers.

// Not by an import, which reads every export and so loads fetch's library (ARCHITECTURE.md, "What makes it start
// quickly").
const { STATUS_CODES } = process.getBuiltinModule("node:http");

export function reasonPhrase(status: number): string {
  return STATUS_CODES[status] ?? "Unknown";
}
