// Fields that say something of a connection of HTTP/1.1, and that no message of HTTP/2 has (RFC 9113 §8.2.2).
export const connectionFields: ReadonlySet<string> = new Set([
  "connection",
  "proxy-connection",
  "keep-alive",
  "transfer-encoding",
  "upgrade",
]);
