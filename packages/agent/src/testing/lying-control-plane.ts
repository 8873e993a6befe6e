// A control plane that no library keeps honest: HTTP/2 of Node, behind which a test answers streams with whatever it
// likes, and which knows when each connection came.
import http2 from "node:http2";
import type net from "node:net";
import type { TestContext } from "node:test";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { type Any, AnySchema } from "@bufbuild/protobuf/wkt";
import { type ResourceTypeName, encodeResponse, resourceType } from "@tulle/xds";
import { resourceSchemas } from "@tulle/xds/resource-schemas";
import { type DiscoveryRequest, DiscoveryRequestSchema } from "@tulle/xds/envoy/service/discovery/v3/discovery_pb";

export interface LyingStream {
  readonly call: http2.ServerHttp2Stream;
  readonly session: http2.ServerHttp2Session;
  readonly socket: net.Socket;
  /** The newest first. */
  readonly requests: DiscoveryRequest[];
}

/** What becomes of a stream whose first request is there. */
export type Answer = (stream: LyingStream) => void;

export interface LyingControlPlane {
  readonly port: number;
  /** Of connections, in milliseconds. */
  readonly openedAtMs: readonly number[];
  readonly streams: readonly LyingStream[];
  /** Of streams from now on. */
  answer: Answer;
}

export async function startLyingControlPlane(context: TestContext, answer: Answer): Promise<LyingControlPlane> {
  // It may ask for as many answers as it likes.
  const server = http2.createServer({ maxOutstandingPings: 1_000_000, maxOutstandingSettings: 1_000_000 } as never);
  const sockets = new Set<net.Socket>();
  const openedAtMs: number[] = [];
  const streams: LyingStream[] = [];
  const socketOf = new WeakMap<http2.Http2Session, net.Socket>();
  let newest: net.Socket | undefined;
  // Before the server's own listener, which makes a session of it.
  server.prependListener("connection", (socket: net.Socket) => {
    openedAtMs.push(performance.now());
    newest = socket;
    sockets.add(socket.on("error", () => undefined));
  });
  server.on("session", (session) => {
    socketOf.set(session, newest!);
    session.on("error", () => undefined);
  });
  server.on("stream", (call: http2.ServerHttp2Stream) => {
    const session = call.session as http2.ServerHttp2Session;
    const stream: LyingStream = { call, session, socket: socketOf.get(session)!, requests: [] };
    streams.push(stream);
    let bytes = Buffer.alloc(0);
    call.on("data", (chunk: Buffer) => {
      bytes = Buffer.concat([bytes, chunk]);
      while (bytes.length >= 5 && bytes.length >= 5 + bytes.readUInt32BE(1)) {
        const end = 5 + bytes.readUInt32BE(1);
        stream.requests.unshift(fromBinary(DiscoveryRequestSchema, bytes.subarray(5, end)));
        bytes = bytes.subarray(end);
        if (stream.requests.length === 1) controlPlane.answer(stream);
      }
    });
    call.on("error", () => undefined);
  });
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  context.after(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  const controlPlane: LyingControlPlane = {
    port: (server.address() as net.AddressInfo).port,
    openedAtMs,
    streams,
    answer,
  };
  return controlPlane;
}

export const grpcHead = { ":status": 200, "content-type": "application/grpc" };

/** A message of gRPC; its prefix may claim another length, and has a flag. */
export function framed(message: Uint8Array, length = message.length, flag = 0): Buffer {
  const prefix = Buffer.alloc(5);
  prefix[0] = flag;
  prefix.writeUInt32BE(length, 1);
  return Buffer.concat([prefix, message]);
}

export const cluster = (name: string): Any =>
  create(AnySchema, {
    typeUrl: resourceType("CDS").typeUrl,
    value: toBinary(resourceSchemas.CDS, create(resourceSchemas.CDS, { name, connectTimeout: { seconds: 1n } })),
  });

export interface LyingResponse {
  readonly type?: ResourceTypeName;
  readonly typeUrl?: string;
  readonly versionInfo?: string;
  readonly nonce?: string;
}

/** A response as bytes of the stream. */
export function response(resources: readonly Any[], more: LyingResponse = {}): Buffer {
  const { type = "CDS", typeUrl = resourceType(type).typeUrl, versionInfo = "1", nonce = "n" } = more;
  return framed(encodeResponse({ typeUrl, versionInfo, nonce, resources }));
}
