// A bidirectional gRPC call on an HTTP/2 connection of its own (gRPC over HTTP/2): messages of bytes both ways, and one
// end with its reason. Streams of configuration and of secrets live for days, and who opens one decides on the next
// try: a pool would add nothing.
import type { Socket } from "node:net";
import type { ClientCodecOwner } from "../codec/client-codec.ts";
import { Http2ClientConnection } from "../codec/http2/http2-client-connection.ts";
import type { Http2Options } from "../codec/http2/http2-options.ts";
import type { Http2Stats } from "../codec/http2/http2-stats.ts";
import type { RequestSender, ResponseReceiver, StreamResetReason } from "../codec/stream-codec.ts";
import { isGrpc } from "../http/grpc-status.ts";
import { HeaderMap } from "../http/header-map.ts";
import type { ResponseHead } from "../http/message.ts";
import type { DataPath } from "../worker/data-path.ts";
import { CallbackTimer } from "../worker/timer-wheel.ts";
import { framed, MessageReader } from "./grpc-framing.ts";

export interface GrpcCallRequest {
  readonly scheme: "http" | "https";
  readonly authority: string;
  /** `/package.Service/Method`. */
  readonly path: string;
  /** Names in lower case. */
  readonly metadata: readonly (readonly [name: string, value: string])[];
}

export interface GrpcCallLimits {
  /** Until the server's settings have come; 0 = none. */
  readonly connectTimeoutMs: number;
  readonly maxMessageBytes: number;
  readonly http2: Http2Options;
  readonly http2Stats: () => Http2Stats;
}

/** `status` is the server's word; `failure` everything else, and `error` what the socket says of it. */
export type GrpcEnd =
  | { readonly kind: "status"; readonly status: string; readonly message: string }
  | { readonly kind: "failure"; readonly words: string; readonly error: NodeJS.ErrnoException | undefined };

export interface GrpcCallEvents {
  /** The server has said that it takes the call, which has begun. */
  onOpen(): void;
  onMessage(message: Buffer): void;
  /** What was written has left after `isOverHighWatermark` was true. */
  onDrained(): void;
  /** Once; not after `close()`. */
  onEnd(end: GrpcEnd): void;
}

/** As of any host (`pooled-connection.ts`). */
const maxHeadBytes = 80 * 1024;
const maxFieldCount = 100;
/** Messages that wait in us for a server that reads slowly; who sends many asks whether they do. */
const bufferLimitBytes = 64 * 1024;
const noBytes = Buffer.alloc(0);
/** What a peer says goes into logs. */
const maxWordsCharacters = 500;

/**
 * - `connecting`: the socket is not up, or the server has not said anything yet. A kernel accepts connections for a
 *   program that is stopped: only the server's first frame (RFC 9113 §3.4) says that somebody is there.
 * - `open`: the call has begun.
 * - `ended`.
 */
type State = "connecting" | "open" | "ended";

export class GrpcCall implements ClientCodecOwner, ResponseReceiver {
  readonly #request: GrpcCallRequest;
  readonly #events: GrpcCallEvents;
  readonly #dataPath: DataPath;
  readonly #reader: MessageReader;
  readonly #codec: Http2ClientConnection;
  readonly #timer = new CallbackTimer(() => this.#fail("it did not answer in time"));
  #sender: RequestSender | undefined = undefined;
  #state: State = "connecting";
  /** Whole messages that came while nobody wanted them; the stream's window bounds them. */
  #held: Buffer[] = [];
  #isPaused = false;
  /** Why the connection is about to end. */
  #failure: string | undefined = undefined;

  /** `openSocket` opens it and feeds what it reads to its argument. */
  constructor(
    request: GrpcCallRequest,
    events: GrpcCallEvents,
    limits: GrpcCallLimits,
    dataPath: DataPath,
    openSocket: (onRead: (chunk: Buffer) => void) => Socket,
  ) {
    this.#request = request;
    this.#events = events;
    this.#dataPath = dataPath;
    this.#reader = new MessageReader(limits.maxMessageBytes, (message) => this.#onMessage(message));
    const socket = openSocket((chunk) => this.#codec.onData(chunk));
    const { http2, http2Stats } = limits;
    const settings = { http2, http2Stats, streamsBeforeSettings: 1, maxHeadBytes, maxFieldCount, bufferLimitBytes };
    this.#codec = new Http2ClientConnection(socket, this, settings, dataPath);
    if (limits.connectTimeoutMs > 0) dataPath.timers.arm(this.#timer, limits.connectTimeoutMs, dataPath.turn.nowMs);
  }

  /** Nothing happens before `onOpen` and after the end. */
  write(message: Uint8Array): void {
    this.#sender?.sendRequestData(framed(message), false);
  }

  isOverHighWatermark(): boolean {
    return this.#sender?.isOverHighWatermark() ?? false;
  }

  /** Before it has begun there is nothing to be said: it is closed. */
  end(): void {
    if (this.#sender === undefined) this.close();
    else this.#sender.sendRequestData(noBytes, true);
  }

  pause(): void {
    this.#isPaused = true;
    this.#sender?.pauseResponse();
  }

  resume(): void {
    this.#isPaused = false;
    while (!this.#isPaused && this.#held.length > 0) this.#deliver(this.#held.shift()!);
    if (!this.#isPaused) this.#sender?.resumeResponse();
  }

  close(): void {
    if (this.#state === "ended") return;
    this.#state = "ended";
    this.#held = [];
    this.#dataPath.timers.disarm(this.#timer);
    const sender = this.#sender;
    this.#sender = undefined;
    sender?.resetStream("connection_termination");
    this.#codec.destroy();
  }

  #end(end: GrpcEnd): void {
    if (this.#state === "ended") return;
    this.close();
    this.#events.onEnd(end);
  }

  #fail(words: string, error?: NodeJS.ErrnoException): void {
    this.#end({ kind: "failure", words, error });
  }

  // ClientCodecOwner

  onConnected(): void {
    // Its settings say that the server is there.
  }

  onStreamLimit(): void {
    if (this.#state !== "connecting" || this.#codec.capacity === 0) return;
    this.#dataPath.timers.disarm(this.#timer);
    this.#state = "open";
    const { scheme, authority, path, metadata } = this.#request;
    const headers = new HeaderMap(["te", "trailers", "content-type", "application/grpc"]);
    for (const [name, value] of metadata) headers.append(name, value);
    this.#sender = this.#codec.open(this);
    this.#sender.sendRequestHead({ method: "POST", scheme, authority, path, protocol: "HTTP/2", headers }, false);
    if (this.#isPaused) this.#sender.pauseResponse();
    this.#events.onOpen();
  }

  onStreamEnd(): void {
    // The call's own end says more.
  }

  onGoAway(errorCode: number): void {
    // A server that leaves in peace ends the call in its own time.
    if (errorCode !== 0) this.#fail(`the server has gone away with the error code ${errorCode}`);
  }

  onConnectionFailure(what: string): void {
    this.#failure = `the server breaks the protocol: ${what}`;
  }

  onSilence(): void {
    this.#failure = "the server answers no pings";
  }

  onClosed(error: NodeJS.ErrnoException | undefined): void {
    this.#fail(this.#failure ?? error?.message ?? "the server ended the connection", error);
  }

  // ResponseReceiver

  onInformational(): void {
    // They say nothing of the call.
  }

  onResponseHead({ status, headers }: ResponseHead, endStream: boolean): void {
    if (headers.has("grpc-status")) this.#onStatus(headers);
    else if (status !== 200) this.#fail(`the server answered with the status ${status}`);
    else if (headers.has("content-type") && !isGrpc(headers)) this.#fail("the server's answer is no gRPC");
    else if (endStream) this.#endWithoutStatus();
  }

  onResponseData(chunk: Buffer, endStream: boolean): void {
    const problem = this.#reader.take(chunk);
    if (problem !== undefined) this.#fail(problem);
    else if (endStream) this.#endWithoutStatus();
  }

  onResponseTrailers(trailers: HeaderMap): void {
    this.#onStatus(trailers);
  }

  onUpstreamReset(reason: StreamResetReason): void {
    // Of a connection's end `onClosed` says why.
    if (reason === "connection_termination" || this.#failure !== undefined) return;
    this.#fail(`the server ended the stream: ${reason.replaceAll("_", " ")}`);
  }

  onUpstreamDrained(): void {
    if (this.#state === "open") this.#events.onDrained();
  }

  #endWithoutStatus(): void {
    this.#fail("the server ended the stream without a status");
  }

  #onStatus(fields: HeaderMap): void {
    const status = fields.get("grpc-status");
    if (status === undefined) return this.#endWithoutStatus();
    const message = percentDecoded(fields.get("grpc-message") ?? "").slice(0, maxWordsCharacters);
    this.#end({ kind: "status", status: status.slice(0, maxWordsCharacters), message });
  }

  #onMessage(message: Buffer): void {
    if (this.#isPaused || this.#held.length > 0) this.#held.push(message);
    else this.#deliver(message);
  }

  #deliver(message: Buffer): void {
    if (this.#state === "open") this.#events.onMessage(message);
  }
}

/** gRPC over HTTP/2, "Status-Message". */
function percentDecoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
