// Operators of bytes: of bodies, or all of a connection, and those on the wire. Of a connection they are the same; of a
// request the codecs count, both ends of it and all of its tries.
import { number } from "./operator-makers.ts";
import type { OperatorCompiler } from "./operator.ts";
import { noStreamBytes, type StreamBytes } from "../http/stream-bytes.ts";
import type { StreamInfo } from "../http/stream-info.ts";

/** A connection has no heads. */
const ofConnection = (wireBytesReceived: number, wireBytesSent: number): StreamBytes => ({
  ...noStreamBytes,
  wireBytesReceived,
  wireBytesSent,
});

/** Between the client and us. */
export function downstreamBytesOf(info: StreamInfo): StreamBytes {
  return info.isConnection ? ofConnection(info.bytesReceived, info.bytesSent) : info.downstreamBytes;
}

/** Between us and the host: nothing of a connection that a TCP proxy has not passed on. */
export function upstreamBytesOf(info: StreamInfo): StreamBytes {
  if (!info.isConnection) return info.upstreamBytes;
  if (info.upstreamLocalAddress === undefined) return noStreamBytes;
  return ofConnection(info.bytesSent, info.bytesReceived);
}

function ofSide(side: "DOWNSTREAM" | "UPSTREAM", bytesOf: (info: StreamInfo) => StreamBytes) {
  const of = (read: (bytes: StreamBytes) => number): OperatorCompiler => number((info) => String(read(bytesOf(info))));
  return {
    [`${side}_WIRE_BYTES_RECEIVED`]: of((bytes) => bytes.wireBytesReceived),
    [`${side}_WIRE_BYTES_SENT`]: of((bytes) => bytes.wireBytesSent),
    [`${side}_HEADER_BYTES_RECEIVED`]: of((bytes) => bytes.headerBytesReceived),
    [`${side}_HEADER_BYTES_SENT`]: of((bytes) => bytes.headerBytesSent),
    [`${side}_DECOMPRESSED_HEADER_BYTES_RECEIVED`]: of((bytes) => bytes.decompressedHeaderBytesReceived),
    [`${side}_DECOMPRESSED_HEADER_BYTES_SENT`]: of((bytes) => bytes.decompressedHeaderBytesSent),
  };
}

export const byteOperators: Readonly<Record<string, OperatorCompiler>> = {
  BYTES_RECEIVED: number((info) => String(info.bytesReceived)),
  BYTES_SENT: number((info) => String(info.bytesSent)),
  // HTTP/3 alone sends anything again itself.
  BYTES_RETRANSMITTED: number(() => "0"),
  PACKETS_RETRANSMITTED: number(() => "0"),
  ...ofSide("DOWNSTREAM", downstreamBytesOf),
  ...ofSide("UPSTREAM", upstreamBytesOf),
};
