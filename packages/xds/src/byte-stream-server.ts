// A gRPC server of the ADS method that hands over streams of opaque messages: what the ADS server and the agent's relay
// are built on. Bytes are decoded by them, where a broken message ends its stream with a reason.
import { chmodSync, lstatSync, unlinkSync } from "node:fs";
import type { Server, ServerDuplexStream, ServiceDefinition, handleBidiStreamingCall } from "@grpc/grpc-js";
import type { AdsAddress } from "./ads-server-api.ts";
import { loadGrpc } from "./load-grpc.ts";
import { adsMethods } from "./wire.ts";

export interface ServerByteStream {
  /** The peer's address as gRPC gives it. */
  readonly peer: string;
  /** False when the transport's buffer is full: `onDrain` follows. */
  write(bytes: Uint8Array): boolean;
  /** Ends the stream with status OK. */
  end(): void;
  fail(status: "INVALID_ARGUMENT" | "INTERNAL" | "RESOURCE_EXHAUSTED", details: string): void;
}

export interface ServerByteStreamEvents {
  onMessage(bytes: Uint8Array): void;
  onDrain(): void;
  /** Once, however the stream ends. */
  onEnd(reason: string): void;
}

export interface ByteStreamServerLimits {
  /** Streams over all connections; one more gets RESOURCE_EXHAUSTED. */
  readonly maxStreams: number;
  readonly maxRequestBytes: number;
  readonly maxResponseBytes: number;
  readonly keepAliveIntervalMs: number;
  readonly keepAliveTimeoutMs: number;
}

export interface RunningByteStreamServer {
  /** The address that was bound, with the port taken. */
  readonly address: AdsAddress;
  /** Ends all streams and closes the socket. */
  close(): Promise<void>;
}

type BytesCall = ServerDuplexStream<Buffer, Buffer>;

const asBuffer = (bytes: Uint8Array): Buffer => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);

function method(path: string) {
  return {
    path,
    requestStream: true,
    responseStream: true,
    requestSerialize: asBuffer,
    requestDeserialize: asBuffer,
    responseSerialize: asBuffer,
    responseDeserialize: asBuffer,
  };
}

const service: ServiceDefinition = {
  StreamAggregatedResources: method(adsMethods.sotw),
  DeltaAggregatedResources: method(adsMethods.delta),
};

/** Starts to serve; rejects if the address cannot be bound. */
export async function serveByteStreams(options: {
  readonly address: AdsAddress;
  readonly limits: ByteStreamServerLimits;
  readonly onStream: (stream: ServerByteStream) => ServerByteStreamEvents;
}): Promise<RunningByteStreamServer> {
  const grpc = await loadGrpc();
  const { limits } = options;
  const open = new Set<BytesCall>();
  const server = new grpc.Server({
    "grpc.max_receive_message_length": limits.maxRequestBytes,
    "grpc.max_send_message_length": limits.maxResponseBytes,
    "grpc.keepalive_time_ms": limits.keepAliveIntervalMs,
    "grpc.keepalive_timeout_ms": limits.keepAliveTimeoutMs,
    "grpc.keepalive_permit_without_calls": 1,
  });
  const fail = (call: BytesCall, code: number, details: string): void => void call.emit("error", { code, details });
  const streamAggregatedResources: handleBidiStreamingCall<Buffer, Buffer> = (call: BytesCall) => {
    if (open.size >= limits.maxStreams) {
      fail(call, grpc.status.RESOURCE_EXHAUSTED, `more than ${limits.maxStreams} streams`);
      return;
    }
    open.add(call);
    // Tells the client that the stream stands, before there is anything to send.
    call.sendMetadata(new grpc.Metadata());
    const events = options.onStream({
      peer: call.getPeer(),
      write: (bytes) => call.write(asBuffer(bytes)),
      end: () => call.end(),
      fail: (status, details) => fail(call, grpc.status[status], details),
    });
    listen(call, events, () => open.delete(call));
  };
  server.addService(service, {
    StreamAggregatedResources: streamAggregatedResources,
    DeltaAggregatedResources: (call: BytesCall) =>
      fail(call, grpc.status.UNIMPLEMENTED, "use StreamAggregatedResources"),
  });
  const address = await bind(server, grpc.ServerCredentials.createInsecure(), options.address);
  return {
    address,
    close: async () => {
      for (const call of open) call.end();
      const { promise, resolve } = Promise.withResolvers<void>();
      server.tryShutdown(() => resolve());
      // Streams of clients that do not answer would hold a graceful shutdown for ever.
      server.forceShutdown();
      await promise;
      if ("path" in address) removeSocket(address.path);
    },
  };
}

function listen(call: BytesCall, events: ServerByteStreamEvents, forget: () => boolean): void {
  const ended = (reason: string): void => {
    if (forget()) events.onEnd(reason);
  };
  call.on("data", (bytes: Buffer) => events.onMessage(bytes));
  call.on("drain", () => events.onDrain());
  call.on("end", () => {
    ended("the client ended the stream");
    call.end();
  });
  call.on("cancelled", () => ended("the stream was cut"));
  call.on("error", (error: Partial<Error> & { readonly details?: string }) => {
    ended(error.details ?? error.message ?? "the stream failed");
  });
  call.on("close", () => ended("the stream was closed"));
}

async function bind(
  server: Server,
  credentials: Parameters<Server["bindAsync"]>[1],
  address: AdsAddress,
): Promise<AdsAddress> {
  if ("path" in address) removeSocket(address.path);
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  const host = "path" in address ? `unix:${address.path}` : joinHostPort(address.host, address.port);
  server.bindAsync(host, credentials, (error, port) => (error === null ? resolve(port) : reject(error)));
  const port = await promise;
  if ("path" in address) {
    // Whoever may connect may read a pod's configuration, and keys where SDS is served.
    chmodSync(address.path, 0o600);
    return address;
  }
  return { host: address.host, port };
}

function joinHostPort(host: string, port: number): string {
  return host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;
}

/** A socket file outlives a process that was killed; anything else at that path is left alone, and binding fails. */
function removeSocket(path: string): void {
  if (lstatSync(path, { throwIfNoEntry: false })?.isSocket() === true) unlinkSync(path);
}
