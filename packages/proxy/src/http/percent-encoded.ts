// gRPC's Percent-Encoded, in which `grpc-message` is written (PROTOCOL-HTTP2.md, "Responses").

/** As Envoy, which encodes `~` too. */
export function percentEncoded(bytes: Buffer): string {
  let text = "";
  for (const byte of bytes) {
    const isPlain = byte >= 0x20 && byte < 0x7e && byte !== 0x25;
    text += isPlain ? String.fromCharCode(byte) : `%${byte.toString(16).toUpperCase().padStart(2, "0")}`;
  }
  return text;
}
