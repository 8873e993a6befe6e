// The gRPC side of the ADS server: carries requests into a stream's state machine and its actions out again. Decisions
// are made in sotw/; the incremental protocol will have its own machine beside it, in delta/.
import type { EventEmitter } from "node:events";
import { chmodSync, lstatSync, unlinkSync } from "node:fs";
import type { Server, ServerDuplexStream, ServiceDefinition, handleBidiStreamingCall } from "@grpc/grpc-js";
import type { AdsAddress, AdsServerLimits, AdsServerOptions, RunningAdsServer } from "./ads-server-api.ts";
import { AdsServerConnection } from "./ads-server-connection.ts";
import { systemClock } from "./clock.ts";
import { loadGrpc } from "./load-grpc.ts";
import { adsMethods } from "./wire.ts";

export const defaultAdsServerLimits: AdsServerLimits = {
  maxStreams: 10_000,
  maxRequestBytes: 4 * 1024 * 1024,
  maxResponseBytes: 64 * 1024 * 1024,
  maxOutstandingResponses: 32,
  ackTimeoutMs: 30_000,
  dependencyTimeoutMs: 5_000,
  removalTimeoutMs: 10_000,
  keepAliveIntervalMs: 60_000,
  keepAliveTimeoutMs: 15 * 60_000,
};

type BytesStream = ServerDuplexStream<Buffer, Buffer>;

const passBytes = (bytes: Uint8Array): Buffer => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);

/** Messages cross gRPC as bytes: they are decoded here, where a broken one ends its stream with a reason. */
function method(path: string) {
  return {
    path,
    requestStream: true,
    responseStream: true,
    requestSerialize: passBytes,
    requestDeserialize: passBytes,
    responseSerialize: passBytes,
    responseDeserialize: passBytes,
  };
}

const service: ServiceDefinition = {
  StreamAggregatedResources: method(adsMethods.sotw),
  DeltaAggregatedResources: method(adsMethods.delta),
};

/** Starts to serve; rejects if the address cannot be bound. */
export async function serveAds(options: AdsServerOptions): Promise<RunningAdsServer> {
  const grpc = await loadGrpc();
  const limits = { ...defaultAdsServerLimits, ...options.limits };
  const open = new Set<AdsServerConnection>();
  let nextId = 1;
  const server = new grpc.Server({
    "grpc.max_receive_message_length": limits.maxRequestBytes,
    "grpc.max_send_message_length": limits.maxResponseBytes,
    "grpc.keepalive_time_ms": limits.keepAliveIntervalMs,
    "grpc.keepalive_timeout_ms": limits.keepAliveTimeoutMs,
    "grpc.keepalive_permit_without_calls": 1,
  });
  const streamAggregatedResources: handleBidiStreamingCall<Buffer, Buffer> = (call: BytesStream) => {
    if (open.size >= limits.maxStreams) {
      fail(call, grpc.status.RESOURCE_EXHAUSTED, `more than ${limits.maxStreams} streams`);
      return;
    }
    // Tells the client that the stream stands, before there is anything to send.
    call.sendMetadata(new grpc.Metadata());
    const connection = new AdsServerConnection({
      id: nextId++,
      peer: call.getPeer(),
      handlers: options.handlers,
      limits,
      controlPlaneId: options.controlPlaneId ?? "",
      clock: options.clock ?? systemClock,
      stream: {
        write: (bytes) => call.write(passBytes(bytes)),
        end: () => call.end(),
        fail: (kind, details) => fail(call, grpc.status[kind], details),
      },
    });
    open.add(connection);
    const closed = (reason: string): void => {
      if (!open.delete(connection)) return;
      connection.closed(reason);
    };
    call.on("data", (bytes: Buffer) => connection.received(bytes));
    call.on("drain", () => connection.drained());
    call.on("end", () => {
      closed("the client ended the stream");
      call.end();
    });
    (call as EventEmitter).on("cancelled", () => closed("the stream was cut"));
    call.on("error", (error: Error) => closed(error.message));
    call.on("close", () => closed("the stream was closed"));
  };
  const deltaAggregatedResources: handleBidiStreamingCall<Buffer, Buffer> = (call: BytesStream) =>
    fail(call, grpc.status.UNIMPLEMENTED, "use StreamAggregatedResources");
  server.addService(service, {
    StreamAggregatedResources: streamAggregatedResources,
    DeltaAggregatedResources: deltaAggregatedResources,
  });
  const address = await bind(server, grpc.ServerCredentials.createInsecure(), options.address);
  return {
    address,
    get connections() {
      return [...open].filter((connection) => connection.isConnected);
    },
    close: async () => {
      for (const connection of open) connection.close("the server is closing");
      const { promise, resolve } = Promise.withResolvers<void>();
      server.tryShutdown(() => resolve());
      // Streams of clients that do not answer would hold a graceful shutdown for ever.
      server.forceShutdown();
      await promise;
      if ("path" in address) removeSocket(address.path);
    },
  };
}

function fail(call: BytesStream, code: number, details: string): void {
  call.emit("error", { code, details });
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
