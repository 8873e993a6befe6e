// A bidirectional gRPC stream of opaque messages, on a connection of its own: what the ADS client and the agent's relay
// speak through.
import type { Client, ClientDuplexStream, ServiceError } from "@grpc/grpc-js";
import { callOver, type UnaryRequest } from "./call-unary.ts";
import { type AdsTarget, openChannel } from "./grpc-channel.ts";
import { loadGrpc } from "./load-grpc.ts";
import type { ClientTlsSource } from "./transport-security.ts";
import { type XdsService, type XdsVariant, xdsMethods } from "./methods.ts";
import type { UnaryAnswer } from "./unary-calls.ts";

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
  /** A unary call on the stream's own connection, so that it reaches the same server; undefined while there is none. */
  call?(request: CallOnStream): Promise<UnaryAnswer> | undefined;
  close(): void;
}

export type CallOnStream = Pick<UnaryRequest, "path" | "bytes" | "timeoutMs">;

export interface ByteStreamLimits {
  readonly connectTimeoutMs: number;
  readonly maxMessageBytes: number;
  /**
   * Pings over TCP, so that a control plane whose machine is gone is noticed. gRPC in Go refuses them below five
   * minutes.
   */
  readonly keepAliveIntervalMs: number;
  readonly keepAliveTimeoutMs: number;
}

export const defaultByteStreamLimits: ByteStreamLimits = {
  connectTimeoutMs: 5_000,
  maxMessageBytes: 64 * 1024 * 1024,
  keepAliveIntervalMs: 5 * 60_000,
  keepAliveTimeoutMs: 60_000,
};

export interface ByteStreamOptions {
  readonly limits?: ByteStreamLimits;
  /** With it the target is `https://host:port`. Read once, when the connection is made. */
  readonly tls?: ClientTlsSource;
  /** `ads` unless told. */
  readonly service?: XdsService;
  /** `sotw` unless told. */
  readonly variant?: XdsVariant;
}

/**
 * Opens `http://host:port`, `https://host:port` or `unix:/path`; returns at once and reports by events. gRPC's own
 * reconnection is not used: one call, one connection, so that back-off is decided in one place only.
 */
export function openByteStream(
  target: AdsTarget,
  events: ByteStreamEvents,
  options: ByteStreamOptions = {},
): ByteStream {
  const stream = new GrpcByteStream(target, events, options);
  stream.open().catch((error: unknown) => stream.end(String(error)));
  return stream;
}

class GrpcByteStream implements ByteStream {
  readonly #target: AdsTarget;
  readonly #events: ByteStreamEvents;
  readonly #options: ByteStreamOptions;
  #client: Client | undefined;
  #call: ClientDuplexStream<Uint8Array, Buffer> | undefined;
  #isClosed = false;
  #isPaused = false;

  constructor(target: AdsTarget, events: ByteStreamEvents, options: ByteStreamOptions) {
    this.#target = target;
    this.#events = events;
    this.#options = options;
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

  call(request: CallOnStream): Promise<UnaryAnswer> | undefined {
    return this.#isClosed || this.#call === undefined || this.#client === undefined
      ? undefined
      : callOver(this.#client, request);
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
    const { limits = defaultByteStreamLimits, tls } = this.#options;
    const grpc = await loadGrpc();
    if (this.#isClosed) return;
    const client = await openChannel(this.#target, limits, tls?.());
    if (this.#isClosed) {
      client.close();
      return;
    }
    this.#client = client;
    const channel = client.getChannel();
    const deadline = Date.now() + limits.connectTimeoutMs;
    const watch = (): void => {
      if (this.#isClosed) return;
      const state = channel.getConnectivityState(true);
      if (state === grpc.connectivityState.READY) this.#start(client);
      else if (state === grpc.connectivityState.TRANSIENT_FAILURE) this.#fail(client);
      else {
        channel.watchConnectivityState(state, deadline, (error) => {
          if (error === undefined) watch();
          else this.end(`cannot connect to ${this.#target} in ${limits.connectTimeoutMs} ms`);
        });
      }
    };
    watch();
  }

  #makeCall(client: Client): ClientDuplexStream<Uint8Array, Buffer> {
    const { service = "ads", variant = "sotw" } = this.#options;
    return client.makeBidiStreamRequest(
      xdsMethods[service][variant],
      (bytes: Uint8Array) => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength),
      (bytes: Buffer) => bytes,
    );
  }

  #start(client: Client): void {
    const call = this.#makeCall(client);
    this.#call = call;
    call.on("data", (bytes: Buffer) => {
      if (!this.#isClosed) this.#events.onMessage(bytes);
    });
    call.on("error", (failure: ServiceError) => this.end(wordsOf(failure)));
    call.on("end", () => this.end("the server ended the stream"));
    if (this.#isPaused) call.pause();
    this.#events.onOpen();
  }

  /** A channel says that it cannot connect, but why it tells only to a call. */
  #fail(client: Client): void {
    const call = this.#makeCall(client);
    this.#call = call;
    call.on("data", () => undefined);
    call.on("error", (failure: ServiceError) => this.end(`cannot connect to ${this.#target}: ${wordsOf(failure)}`));
    call.on("end", () => this.end(`cannot connect to ${this.#target}`));
  }
}

/** What a peer says goes into logs. */
const maxReasonCharacters = 500;

/** gRPC fails a call without a status where a message is compressed and the answer's head does not say so. */
function wordsOf({ code, message }: ServiceError): string {
  const words =
    (code as number | undefined) === undefined ? "a message is compressed in no way that was agreed" : message;
  return words.slice(0, maxReasonCharacters);
}
