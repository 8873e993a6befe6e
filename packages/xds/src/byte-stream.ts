// A bidirectional gRPC stream of opaque messages, on a connection of its own: what the ADS client and the agent's relay
// speak through.
import type { ClientDuplexStream } from "@grpc/grpc-js";
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
  let call: ClientDuplexStream<Uint8Array, Buffer> | undefined;
  let closeClient: () => void = () => undefined;
  let isClosed = false;
  let isPaused = false;
  const end = (reason: string): void => {
    if (isClosed) return;
    close();
    events.onEnd(reason);
  };
  const close = (): void => {
    isClosed = true;
    call?.cancel();
    closeClient();
  };
  const open = async (): Promise<void> => {
    const grpc = await loadGrpc();
    if (isClosed) return;
    const client = new grpc.Client(grpcTarget(target), grpc.credentials.createInsecure(), {
      "grpc.max_receive_message_length": limits.maxMessageBytes,
      "grpc.max_send_message_length": limits.maxMessageBytes,
      // A subchannel shared with an earlier try would bring that one's back-off along.
      "grpc.use_local_subchannel_pool": 1,
      "grpc.enable_http_proxy": 0,
      "grpc.service_config_disable_resolution": 1,
      ...(target.startsWith("unix:")
        ? {}
        : {
            "grpc.keepalive_time_ms": limits.keepAliveIntervalMs,
            "grpc.keepalive_timeout_ms": limits.keepAliveTimeoutMs,
          }),
    });
    closeClient = () => client.close();
    const start = (): void => {
      call = client.makeBidiStreamRequest(
        adsMethods.sotw,
        (bytes: Uint8Array) => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength),
        (bytes: Buffer) => bytes,
        new grpc.Metadata(),
      );
      call.on("data", (bytes: Buffer) => {
        if (!isClosed) events.onMessage(bytes);
      });
      call.on("error", (failure: Error) => end(failure.message));
      call.on("end", () => end("the server ended the stream"));
      if (isPaused) call.pause();
      events.onOpen();
    };
    const channel = client.getChannel();
    const deadline = Date.now() + limits.connectTimeoutMs;
    const watch = (): void => {
      if (isClosed) return;
      const state = channel.getConnectivityState(true);
      if (state === grpc.connectivityState.READY) start();
      else if (state === grpc.connectivityState.TRANSIENT_FAILURE) end(`cannot connect to ${target}`);
      else {
        channel.watchConnectivityState(state, deadline, (error) =>
          error === undefined ? watch() : end(`cannot connect to ${target} in ${limits.connectTimeoutMs} ms`),
        );
      }
    };
    watch();
  };
  open().catch((error: unknown) => end(String(error)));
  return {
    write: (bytes) => {
      if (!isClosed) call?.write(bytes);
    },
    pause: () => {
      isPaused = true;
      call?.pause();
    },
    resume: () => {
      isPaused = false;
      call?.resume();
    },
    close,
  };
}

/** gRPC's name for a target. @throws if it is neither an `http:` URL nor a Unix socket */
function grpcTarget(target: AdsTarget): string {
  if (target.startsWith("unix:")) return target;
  const url = new URL(target);
  if (url.protocol !== "http:") throw new Error(`${target}: expected http://host:port or unix:/path`);
  return `${url.hostname}:${url.port === "" ? "80" : url.port}`;
}
