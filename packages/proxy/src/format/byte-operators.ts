// Operators of bytes: of bodies, or all of a connection, and those on the wire. Of a connection they are the same; what
// a single request takes on the wire, or in heads, is not counted.
import { number } from "./operator-makers.ts";
import type { OperatorCompiler } from "./operator.ts";
import type { StreamInfo } from "../http/stream-info.ts";

function ofConnection(read: (info: StreamInfo) => number): OperatorCompiler {
  return number((info) => (info.isConnection ? String(read(info)) : undefined));
}

/** Whether a TCP proxy has passed anything on. */
const isPassedOn = ({ upstreamLocalAddress }: StreamInfo): boolean => upstreamLocalAddress !== undefined;

/** A connection has no heads. */
const headBytes = ofConnection(() => 0);

export const byteOperators: Readonly<Record<string, OperatorCompiler>> = {
  BYTES_RECEIVED: number((info) => String(info.bytesReceived)),
  BYTES_SENT: number((info) => String(info.bytesSent)),
  // HTTP/3 alone sends anything again itself.
  BYTES_RETRANSMITTED: number(() => "0"),
  PACKETS_RETRANSMITTED: number(() => "0"),
  DOWNSTREAM_WIRE_BYTES_RECEIVED: ofConnection((info) => info.bytesReceived),
  DOWNSTREAM_WIRE_BYTES_SENT: ofConnection((info) => info.bytesSent),
  UPSTREAM_WIRE_BYTES_SENT: ofConnection((info) => (isPassedOn(info) ? info.bytesReceived : 0)),
  UPSTREAM_WIRE_BYTES_RECEIVED: ofConnection((info) => (isPassedOn(info) ? info.bytesSent : 0)),
  DOWNSTREAM_HEADER_BYTES_RECEIVED: headBytes,
  DOWNSTREAM_HEADER_BYTES_SENT: headBytes,
  DOWNSTREAM_DECOMPRESSED_HEADER_BYTES_RECEIVED: headBytes,
  DOWNSTREAM_DECOMPRESSED_HEADER_BYTES_SENT: headBytes,
  UPSTREAM_HEADER_BYTES_RECEIVED: headBytes,
  UPSTREAM_HEADER_BYTES_SENT: headBytes,
  UPSTREAM_DECOMPRESSED_HEADER_BYTES_RECEIVED: headBytes,
  UPSTREAM_DECOMPRESSED_HEADER_BYTES_SENT: headBytes,
};
