// The server side of one HTTP/1.1 connection: bytes in, requests to the owner one after the other, answers out in
// order. Pipelined requests wait unread until the one before is answered, so that nothing piles up.
import type { Socket } from "node:net";
import type { DataPath } from "../../worker/data-path.ts";
import type { HeaderMap } from "../../http/header-map.ts";
import type { ResponseHead } from "../../http/message.ts";
import { fieldLineBytes } from "../../http/headers-bytes.ts";
import type { ServerCodec, ServerCodecOwner } from "../server-codec.ts";
import {
  HttpProtocolError,
  type RequestReceiver,
  type ResponseSender,
  type StreamResetReason,
} from "../stream-codec.ts";
import { BodyDecoder, type BodySink } from "./body-decoder.ts";
import { HeadFields } from "./head-fields.ts";
import { HeadReader, mayBeginRequest } from "./head-reader.ts";
import type { Http1ServerSettings } from "./http1-server-settings.ts";
import { Http1StreamBytes } from "./http1-stream-bytes.ts";
import { LingeringClose } from "../../worker/lingering-close.ts";
import { parseRequestHead, requestHeadError } from "./request-head.ts";
import { ResponseEncoder } from "./response-encoder.ts";
import { type SilentClient, ServerTimers } from "../server-timers.ts";
import { SocketOutput } from "../../worker/socket-output.ts";

const carriageReturn = 13;
const lineFeed = 10;

/**
 * - `head`: between requests, or collecting a head.
 * - `body`: the body of the request in hand arrives.
 * - `answering`: the request is complete, its answer is not.
 * - `tunnel`: bytes pass raw.
 * - `closing`: the last answer is written; what still comes is thrown away until the peer ends or has had its time.
 * - `closed`: the socket is gone.
 */
type State = "head" | "body" | "answering" | "tunnel" | "closing" | "closed";

const noBytes: Buffer = Buffer.alloc(0);

export class Http1ServerConnection implements ServerCodec, ResponseSender, BodySink, SilentClient {
  readonly protocol = "HTTP/1.1";
  readonly #socket: Socket;
  readonly #owner: ServerCodecOwner;
  readonly #settings: Http1ServerSettings;
  readonly #dataPath: DataPath;
  readonly #output: SocketOutput;
  readonly bytes: Http1StreamBytes;
  readonly #response: ResponseEncoder;
  readonly #head: HeadReader;
  readonly #fields = new HeadFields();
  readonly #body: BodyDecoder;
  readonly #timers: ServerTimers;

  #state: State = "head";
  #receiver: RequestReceiver | undefined = undefined;
  /** What was pipelined behind the request in hand. */
  #held: Buffer = noBytes;
  #consuming = false;
  #tunnelAsked = false;
  #paused = false;
  #peerEnded = false;
  /** The next answer is the last. */
  #isDraining = false;
  #ending: LingeringClose | undefined = undefined;
  bytesReceived = 0;

  constructor(socket: Socket, owner: ServerCodecOwner, settings: Http1ServerSettings, dataPath: DataPath) {
    this.#socket = socket;
    this.#owner = owner;
    this.#settings = settings;
    this.#dataPath = dataPath;
    this.#output = new SocketOutput(socket, dataPath, settings.bufferLimitBytes, () => this.#onDrained());
    this.bytes = new Http1StreamBytes(this, this.#output);
    this.#response = new ResponseEncoder(this.#output, this.bytes, settings.enableTrailers);
    this.#head = new HeadReader(settings.maxHeadBytes, settings.maxFieldCount, mayBeginRequest);
    this.#body = new BodyDecoder(settings.maxHeadBytes, settings.maxFieldCount);
    this.#timers = new ServerTimers(this, settings.idleTimeoutMs, settings.headersTimeoutMs, dataPath);
    socket.on("end", () => this.#onEnd());
    // The reason does not matter to HTTP: `close` follows in every case.
    socket.on("error", () => undefined);
    socket.on("close", () => this.#onClose());
  }

  get bytesSent(): number {
    return this.#output.bytesSent;
  }

  onData(data: Buffer): void {
    this.bytesReceived += data.length;
    const { turn } = this.#dataPath;
    turn.begin();
    try {
      this.#consume(data, false);
    } finally {
      turn.end();
    }
  }

  drain(): void {
    this.#isDraining = true;
  }

  close(): void {
    if (this.#state === "closing" || this.#state === "closed") return;
    this.#state = "closing";
    this.#held = noBytes;
    this.#head.forget();
    this.#timers.endHead();
    this.#ending = new LingeringClose(this.#socket, this.#output, this.#dataPath, this.#settings, this.#owner);
    if (!this.#peerEnded) this.#socket.resume();
  }

  closeWhenAnswered(): void {
    if (this.#state === "head") this.close();
    else this.#response.keepAlive = false;
  }

  destroy(): void {
    this.#output.flush();
    this.#socket.destroy();
  }

  /** `isOurs`: no view on the read buffer. */
  #consume(data: Buffer, isOurs: boolean): void {
    if (this.#held.length > 0) {
      // What had been read when reading was paused.
      data = Buffer.concat([this.#held, data]);
      isOurs = true;
      this.#held = noBytes;
    }
    let position = 0;
    this.#consuming = true;
    while (position < data.length) {
      if (this.#state === "head") {
        if (this.#output.isOverHighWatermark()) {
          // Who reads no answers gets no further ones made.
          this.#hold(data, position, isOurs);
          break;
        }
        position = this.#takeHead(data, position);
        if (position < 0) break;
      } else if (this.#state === "body") {
        position = this.#takeBody(data, position);
      } else if (this.#state === "tunnel") {
        this.#receiver!.onRequestData(position === 0 ? data : data.subarray(position), false);
        break;
      } else {
        if (this.#state === "answering") this.#hold(data, position, isOurs);
        break;
      }
    }
    this.#consuming = false;
  }

  #hold(data: Buffer, position: number, isOurs: boolean): void {
    const rest = position === 0 ? data : data.subarray(position);
    this.#held = isOurs ? rest : Buffer.from(rest);
    this.bytes.behindBytes = rest.length;
    this.#socket.pause();
  }

  #onDrained(): void {
    if (this.#receiver !== undefined) this.#receiver.onDownstreamDrained();
    else if (this.#state === "head") this.#drainHeld();
  }

  /** Gives the position behind the head, or -1 when there is none yet or the connection ends. */
  #takeHead(data: Buffer, start: number): number {
    const reader = this.#head;
    let position = start;
    if (!reader.isPartial) {
      this.bytes.beginReceiving(data.length - start);
      // An empty line or more before a request is let pass (RFC 9112 §2.2).
      while (data[position] === carriageReturn && data[position + 1] === lineFeed) position += 2;
      if (position === data.length) return position;
    }
    const next = reader.read(data, position);
    this.bytes.behindBytes = next < 0 ? 0 : data.length - next;
    if (next >= 0) return this.#startRequest() ? next : -1;
    if (reader.fault !== undefined) this.#refuse(requestHeadError(reader.fault, reader, this.#settings, this.#fields));
    else this.#timers.beginHead();
    return -1;
  }

  #startRequest(): boolean {
    const { text, end } = this.#head;
    this.#head.forget();
    // The rest of an empty line whose CR had come before.
    if (text === "") return true;
    const framing = parseRequestHead(text, end, this.#settings, this.#fields);
    if (framing instanceof HttpProtocolError) {
      this.#refuse(framing);
      return false;
    }
    this.#timers.endHead();
    const { head, bodyBytes } = framing;
    this.#response.start(head.method === "HEAD", head.protocol === "HTTP/1.0", framing.keepAlive);
    this.bytes.decompressedHeaderBytesReceived = this.#fields.bytes;
    this.#tunnelAsked = framing.upgrade !== "";
    if (this.#tunnelAsked) {
      head.upgrade = framing.upgrade;
      // Whatever the answer, the client may already be speaking another protocol behind its head (as Envoy).
      this.#response.keepAlive = false;
    }
    if (bodyBytes !== 0 || this.#tunnelAsked) this.bytes.behindBytes = 0;
    if (bodyBytes === 0) this.#requestEnded();
    else {
      this.#state = "body";
      if (bodyBytes > 0) this.#body.startLength(bodyBytes);
      else this.#body.startChunked();
    }
    const receiver = this.#owner.newStream(this);
    this.#receiver = receiver;
    receiver.onRequestHead(head, bodyBytes === 0 && !this.#tunnelAsked);
    // As Envoy, the proxy itself invites the body, unless the request has been answered already (RFC 9110 §10.1.1).
    if (framing.expectContinue && bodyBytes !== 0 && this.#receiver === receiver && this.#response.isUnsent) {
      this.#output.writeText("HTTP/1.1 100 Continue\r\n\r\n");
    }
    return true;
  }

  #takeBody(data: Buffer, position: number): number {
    const next = this.#body.decode(data, position, this);
    if (next >= 0) return next;
    // The answer may have ended the connection while the data before the fault was passed on.
    if (this.#state !== "body") return data.length;
    this.#response.keepAlive = false;
    const receiver = this.#receiver;
    this.#state = "answering";
    receiver?.onRequestError(new HttpProtocolError(400, "http1.codec_error"));
    return data.length;
  }

  onBodyData(chunk: Buffer, endStream: boolean): void {
    if (this.#state !== "body") return;
    if (endStream) this.#requestEnded();
    this.#receiver?.onRequestData(chunk, endStream);
  }

  onBodyEnd(trailers: HeaderMap | undefined): void {
    if (this.#state !== "body") return;
    this.#requestEnded();
    if (trailers !== undefined && this.#settings.enableTrailers) {
      this.bytes.trailerBytesReceived = fieldLineBytes(trailers);
      this.#receiver?.onRequestTrailers(trailers);
    } else this.#receiver?.onRequestData(noBytes, true);
  }

  #requestEnded(): void {
    this.#state = "answering";
    this.#timers.quietSinceMs = this.#dataPath.turn.nowMs;
  }

  #refuse(error: HttpProtocolError): void {
    this.#head.forget();
    this.#response.start(false, false, false);
    this.#tunnelAsked = false;
    this.#state = "answering";
    this.#owner.onConnectionError(this, error);
  }

  sendInformational(status: number, headers: HeaderMap): void {
    this.#response.writeInformational(status, headers);
  }

  sendResponseHead(head: ResponseHead, endStream: boolean): void {
    // The rest of a request that is answered early would have to be read and thrown away: Envoy closes, and so do we.
    if (this.#state === "body" || this.#isDraining) this.#response.keepAlive = false;
    this.#response.writeHead(head, endStream);
    if (this.#response.isTunnel) this.#startTunnel();
    else if (endStream) this.#responseEnded();
  }

  sendResponseData(chunk: Buffer, endStream: boolean): void {
    this.#response.writeData(chunk, endStream);
    if (endStream) this.#responseEnded();
  }

  sendResponseTrailers(trailers: HeaderMap): void {
    this.#response.writeTrailers(trailers);
    this.#responseEnded();
  }

  endWithResponse(): void {
    this.#response.keepAlive = false;
  }

  upgradeToTunnel(): void {
    if (!this.#tunnelAsked) throw new Error("a tunnel that the client did not ask for");
    this.#response.startTunnel();
  }

  #startTunnel(): void {
    this.#state = "tunnel";
    this.#response.keepAlive = false;
    this.#drainHeld();
  }

  #responseEnded(): void {
    const state = this.#state;
    this.#response.end();
    this.#receiver?.onResponseWritten();
    this.#receiver = undefined;
    this.#timers.quietSinceMs = this.#dataPath.turn.nowMs;
    if (state === "closed") return;
    if (!this.#response.keepAlive || state !== "answering" || this.#peerEnded) {
      this.#owner.onStreamEnd();
      this.close();
      return;
    }
    this.#state = "head";
    this.#owner.onStreamEnd();
    this.#drainHeld();
  }

  // A request that was pipelined, or what came behind the head of an upgrade, has its turn now.
  #drainHeld(): void {
    if (this.#paused) this.resumeRequest();
    if (this.#held.length === 0) return;
    this.#socket.resume();
    if (this.#consuming) return;
    this.#dataPath.turn.run(() => {
      // Nothing is read meanwhile: what is held is the beginning of what comes.
      const held = this.#held;
      this.#held = noBytes;
      this.#consume(held, true);
    });
  }

  resetStream(_reason: StreamResetReason): void {
    this.#receiver = undefined;
    if (this.#state === "closed") return;
    this.#output.flush();
    this.#response.keepAlive = false;
    // A body cut short must not look complete: the end of the connection says so where the framing does; where only the
    // end itself is the framing, the connection is reset.
    const looksComplete = this.#response.endsByClose;
    this.#owner.onStreamEnd();
    if (looksComplete) this.#socket.resetAndDestroy();
    else this.close();
  }

  isOverHighWatermark(): boolean {
    return this.#output.isOverHighWatermark();
  }

  pauseRequest(): void {
    this.#paused = true;
    this.#socket.pause();
  }

  resumeRequest(): void {
    if (!this.#paused) return;
    this.#paused = false;
    if (this.#state !== "answering" || this.#held.length === 0) this.#socket.resume();
  }

  #onEnd(): void {
    this.#peerEnded = true;
    if (this.#state === "closing") {
      this.destroy();
      return;
    }
    this.#dataPath.turn.run(() => {
      const answering = this.#state === "answering" && this.#receiver !== undefined && !this.#tunnelAsked;
      if (answering && this.#timers.hasJustSpoken) return;
      if (this.#state === "tunnel") this.#receiver?.onRequestData(noBytes, true);
      else this.destroy();
    });
  }

  #onClose(): void {
    if (this.#state === "closed") return;
    this.#state = "closed";
    this.#held = noBytes;
    this.#head.forget();
    this.#timers.stop();
    this.#ending?.cancel();
    const receiver = this.#receiver;
    this.#receiver = undefined;
    this.#dataPath.turn.run(() => {
      receiver?.onDownstreamReset("connection_termination");
      this.#owner.onConnectionClosed();
    });
  }

  get isBetweenRequests(): boolean {
    return this.#state === "head";
  }

  onIdleTimeout(): void {
    this.#owner.onConnectionIdle();
    this.close();
  }

  onHeadTimeout(): void {
    if (this.#state === "head") this.#refuse(new HttpProtocolError(408, "request_header_timeout"));
  }
}
