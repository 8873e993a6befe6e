// A bidirectional gRPC stream of opaque messages, on a connection of its own: what the ADS client and the agent's relay
// speak through.
import type { ChannelOptions, Client, ClientDuplexStream, Metadata } from "@grpc/grpc-js";
import type { AdsTarget } from "./ads-client-api.ts";
import { loadGrpc } from "./load-grpc.ts";
import { adsMethods } from "./wire.ts";

export interface ByteStreamEvents {
  /** The connection stands, and messages can be written. */
  onOpen(): void;
  onMessage(bytes: Uint8Array): void;
  /** Once, also if it never opened; not after `close()`. */
  onEnd(reason: string): void;
}

export interface ByteStream {
  /** Nothing happens before `onOpen` and after the end. */
  write(bytes: Uint8Array): void;
  /** Stops and restarts `onMessage`; the peer is held by HTTP/2's flow control. */
  pause(): void;
  resume(): void;
  close(): void;
}

export interface ByteStreamLimits {
  readonly connectTimeoutMs: number;
  readonly maxMessageBytes: number;
  /** Pings over TCP, so that a control plane whose machine is gone is noticed. gRPC in Go refuses them below five minutes. */
  readonly keepAliveIntervalMs: number;
  readonly keepAliveTimeoutMs: number;
}

export const defaultByteStreamLimits: ByteStreamLimits = {
  connectTimeoutMs: 5_000,
  maxMessageBytes: 64 * 1024 * 1024,
  keepAliveIntervalMs: 5 * 60_000,
  keepAliveTimeoutMs: 60_000,
};

/**
 * Opens `http://host:port` or `unix:/path`; returns at once and reports by events. gRPC's own reconnection is not used:
 * one call, one connection, so that back-off is decided in one place only.
 */
export function openByteStream(
  target: AdsTarget,
  events: ByteStreamEvents,
  limits: ByteStreamLimits = defaultByteStreamLimits,
): ByteStream {
  const stream = new GrpcByteStream(target, events, limits);
  stream.open().catch((error: unknown) => stream.end(String(error)));
  return stream;
}

class GrpcByteStream implements ByteStream {
  readonly #target: AdsTarget;
  readonly #events: ByteStreamEvents;
  readonly #limits: ByteStreamLimits;
  #client: Client | undefined;
  #call: ClientDuplexStream<Uint8Array, Buffer> | undefined;
  #isClosed = false;
  #isPaused = false;

  constructor(target: AdsTarget, events: ByteStreamEvents, limits: ByteStreamLimits) {
    this.#target = target;
    this.#events = events;
    this.#limits = limits;
  }

  write(bytes: Uint8Array): void {
    if (!this.#isClosed) this.#call?.write(bytes);
  }

  pause(): void {
    this.#isPaused = true;
    this.#call?.pause();
  }

  resume(): void {
    this.#isPaused = false;
    this.#call?.resume();
  }

  close(): void {
    this.#isClosed = true;
    this.#call?.cancel();
    this.#client?.close();
  }

  end(reason: string): void {
    if (this.#isClosed) return;
    this.close();
    this.#events.onEnd(reason);
  }

  async open(): Promise<void> {
    const grpc = await loadGrpc();
    if (this.#isClosed) return;
    const options = channelOptions(this.#target, this.#limits);
    const client = new grpc.Client(grpcTarget(this.#target), grpc.credentials.createInsecure(), options);
    this.#client = client;
    const channel = client.getChannel();
    const deadline = Date.now() + this.#limits.connectTimeoutMs;
    const watch = (): void => {
      if (this.#isClosed) return;
      const state = channel.getConnectivityState(true);
      if (state === grpc.connectivityState.READY) this.#start(client, new grpc.Metadata());
      else if (state === grpc.connectivityState.TRANSIENT_FAILURE) this.end(`cannot connect to ${this.#target}`);
      else {
        channel.watchConnectivityState(state, deadline, (error) => {
          if (error === undefined) watch();
          else this.end(`cannot connect to ${this.#target} in ${this.#limits.connectTimeoutMs} ms`);
        });
      }
    };
    watch();
  }

  #start(client: Client, metadata: Metadata): void {
    const call = client.makeBidiStreamRequest(
      adsMethods.sotw,
      (bytes: Uint8Array) => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength),
      (bytes: Buffer) => bytes,
      metadata,
    );
    this.#call = call;
    call.on("data", (bytes: Buffer) => {
      if (!this.#isClosed) this.#events.onMessage(bytes);
    });
    call.on("error", (failure: Error) => this.end(failure.message));
    call.on("end", () => this.end("the server ended the stream"));
    if (this.#isPaused) call.pause();
    this.#events.onOpen();
  }
}

function channelOptions(target: AdsTarget, limits: ByteStreamLimits): ChannelOptions {
  const keepAlive = {
    "grpc.keepalive_time_ms": limits.keepAliveIntervalMs,
    "grpc.keepalive_timeout_ms": limits.keepAliveTimeoutMs,
  };
  return {
    "grpc.max_receive_message_length": limits.maxMessageBytes,
    "grpc.max_send_message_length": limits.maxMessageBytes,
    // A subchannel shared with an earlier try would bring that one's back-off along.
    "grpc.use_local_subchannel_pool": 1,
    "grpc.enable_http_proxy": 0,
    "grpc.service_config_disable_resolution": 1,
    ...(target.startsWith("unix:") ? {} : keepAlive),
  };
}

/** gRPC's name for a target. @throws if it is neither an `http:` URL nor a Unix socket */
function grpcTarget(target: AdsTarget): string {
  if (target.startsWith("unix:")) return target;
  const url = new URL(target);
  if (url.protocol !== "http:") throw new Error(`${target}: expected http://host:port or unix:/path`);
  return `${url.hostname}:${url.port === "" ? "80" : url.port}`;
}
