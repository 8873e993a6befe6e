// What one stream takes on the wire, as its codec counts it (Envoy: `BytesMeter`). TLS is not part of it.

export interface StreamBytes {
  /** Everything that belongs to the stream: heads, framing, body, trailers, and what we say before the answer. */
  readonly wireBytesSent: number;
  readonly wireBytesReceived: number;
  /** Fields of heads and trailers: lines of HTTP/1.1 without the first, frames of HTTP/2 with their headers. */
  readonly headerBytesSent: number;
  readonly headerBytesReceived: number;
  /** Names and values of HTTP/2; of HTTP/1.1, which compresses nothing, the same, without trailers that have come. */
  readonly decompressedHeaderBytesSent: number;
  readonly decompressedHeaderBytesReceived: number;
}

export const noStreamBytes: StreamBytes = {
  wireBytesSent: 0,
  wireBytesReceived: 0,
  headerBytesSent: 0,
  headerBytesReceived: 0,
  decompressedHeaderBytesSent: 0,
  decompressedHeaderBytesReceived: 0,
};

/** Of both together, now: a stream of HTTP/1.1 is its connection, which goes on to count for the next one. */
export function sumOfBytes(first: StreamBytes, second: StreamBytes): StreamBytes {
  return {
    wireBytesSent: first.wireBytesSent + second.wireBytesSent,
    wireBytesReceived: first.wireBytesReceived + second.wireBytesReceived,
    headerBytesSent: first.headerBytesSent + second.headerBytesSent,
    headerBytesReceived: first.headerBytesReceived + second.headerBytesReceived,
    decompressedHeaderBytesSent: first.decompressedHeaderBytesSent + second.decompressedHeaderBytesSent,
    decompressedHeaderBytesReceived: first.decompressedHeaderBytesReceived + second.decompressedHeaderBytesReceived,
  };
}
