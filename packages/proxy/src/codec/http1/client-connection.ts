// The client side of one HTTP/1.1 connection to an upstream host: one request at a time, its response read strictly.
// The pool owns it and learns whether it may be used again.
import type { Socket } from "node:net";
import { ipPortText } from "../../http/ip-port-text.ts";
import type { DataPath } from "../../worker/data-path.ts";
import type { UpstreamTlsInfo } from "../../tls/tls-info.ts";
import type { HeaderMap } from "../../http/header-map.ts";
import type { RequestHead } from "../../http/message.ts";
import { fieldLineBytes } from "../../http/headers-bytes.ts";
import { readyEventOf } from "../../tls/ready-event.ts";
import type { ClientCodec, ClientCodecOwner } from "../client-codec.ts";
import type { RequestSender, ResponseReceiver, StreamResetReason } from "../stream-codec.ts";
import { acceptField, acceptOfKey } from "../websocket-key.ts";
import { BodyDecoder, type BodySink } from "./body-decoder.ts";
import { HeadFields } from "./head-fields.ts";
import { HeadReader, mayBeginResponse } from "./head-reader.ts";
import { Http1StreamBytes } from "./http1-stream-bytes.ts";
import { bodyChunked, bodyTunnel, bodyUntilClose, parseResponseHead } from "./response-head.ts";
import { RequestEncoder } from "./request-encoder.ts";
import { SocketOutput } from "../../worker/socket-output.ts";

export interface Http1ClientSettings {
  readonly maxHeadBytes: number;
  readonly maxFieldCount: number;
  readonly enableTrailers: boolean;
  readonly bufferLimitBytes: number;
}

/**
 * - `connecting`: the socket is not up yet.
 * - `idle`: no request in hand.
 * - `head`: a request is on its way, a response head is awaited.
 * - `body`: the response's body arrives.
 * - `answered`: the response is complete, the request is not.
 * - `tunnel`: bytes pass raw.
 * - `closed`: of no more use.
 */
type State = "connecting" | "idle" | "head" | "body" | "answered" | "tunnel" | "closed";

const noBytes: Buffer = Buffer.alloc(0);
/** RFC 9110 §15.2: a client must take any number of 1xx; a back end that sends nothing else is cut off here. */
const maxInformationalCount = 100;

export class Http1ClientConnection implements ClientCodec, RequestSender, BodySink {
  readonly protocol = "HTTP/1.1";
  readonly #socket: Socket;
  readonly #owner: ClientCodecOwner;
  readonly #settings: Http1ClientSettings;
  readonly #dataPath: DataPath;
  readonly #output: SocketOutput;
  readonly bytes: Http1StreamBytes;
  readonly #request: RequestEncoder;
  readonly #head: HeadReader;
  readonly #fields = new HeadFields();
  readonly #body: BodyDecoder;

  #state: State = "connecting";
  #receiver: ResponseReceiver | undefined = undefined;
  #method = "";
  #requestDone = true;
  #keepAlive = true;
  /** The connection has just come up: the host cannot have waited for a request on it. */
  #isNew = false;
  #hasWaited = false;
  /** What `bytesSent` was when the request got the connection. */
  #sentBefore = 0;
  #consuming = false;
  #paused = false;
  /** The socket is being destroyed: nothing more is read from it. */
  #dead = false;
  #informationalCount = 0;
  #error: NodeJS.ErrnoException | undefined = undefined;
  bytesReceived = 0;

  /** `socket` is being connected; whoever made it feeds what it reads to `onData`. */
  constructor(socket: Socket, owner: ClientCodecOwner, settings: Http1ClientSettings, dataPath: DataPath) {
    this.#socket = socket;
    this.#owner = owner;
    this.#settings = settings;
    this.#dataPath = dataPath;
    this.#output = new SocketOutput(socket, dataPath, settings.bufferLimitBytes, () =>
      this.#receiver?.onUpstreamDrained(),
    );
    this.bytes = new Http1StreamBytes(this, this.#output);
    this.#request = new RequestEncoder(this.#output, this.bytes, settings.enableTrailers);
    this.#head = new HeadReader(settings.maxHeadBytes, settings.maxFieldCount, mayBeginResponse);
    this.#body = new BodyDecoder(settings.maxHeadBytes, settings.maxFieldCount);
    socket.on(readyEventOf(socket), (tls?: UpstreamTlsInfo) => this.#onConnect(tls));
    socket.on("end", () => this.#onEnd());
    socket.on("error", (error: NodeJS.ErrnoException) => {
      this.#error = error;
    });
    socket.on("close", () => this.#onClose());
  }

  get bytesSent(): number {
    return this.#output.bytesSent;
  }

  get localAddress(): string | undefined {
    const { localAddress, localPort } = this.#socket;
    return localAddress === undefined ? undefined : ipPortText(localAddress, localPort ?? 0);
  }

  // None from the moment that the socket is given up; that it has closed is heard only in a later turn.
  get capacity(): number {
    return this.#state === "idle" && !this.#socket.destroyed ? 1 : 0;
  }

  open(receiver: ResponseReceiver): RequestSender {
    if (this.#state !== "idle") throw new Error(`a request on a connection that is ${this.#state}`);
    this.#receiver = receiver;
    this.#state = "head";
    this.#requestDone = false;
    this.#informationalCount = 0;
    this.#hasWaited = !this.#isNew;
    this.#sentBefore = this.#output.bytesSent;
    this.bytes.beginReceiving(0);
    this.bytes.begin();
    return this;
  }

  destroy(): void {
    this.#dead = true;
    // A request that nobody waits for any more need not leave; what has gone through a tunnel is not ours to take back.
    if (this.#state === "tunnel") this.#output.flush();
    this.#socket.destroy();
  }

  #onConnect(tls: UpstreamTlsInfo | undefined): void {
    this.#state = "idle";
    this.#isNew = true;
    this.#dataPath.turn.run(() => this.#owner.onConnected(tls));
    this.#isNew = false;
  }

  sendRequestHead(head: RequestHead, endStream: boolean): void {
    this.#method = head.method;
    this.#request.writeHead(head, endStream);
    if (endStream) this.#requestEnded();
  }

  sendRequestData(chunk: Buffer, endStream: boolean): void {
    this.#request.writeData(chunk, endStream);
    if (endStream) this.#requestEnded();
  }

  sendRequestTrailers(trailers: HeaderMap): void {
    this.#request.writeTrailers(trailers);
    this.#requestEnded();
  }

  #requestEnded(): void {
    this.#requestDone = true;
    if (this.#state === "answered" && !this.#consuming && !this.#dead) this.#settle();
  }

  resetStream(_reason: StreamResetReason): void {
    this.#receiver = undefined;
    this.destroy();
  }

  isOverHighWatermark(): boolean {
    return this.#output.isOverHighWatermark();
  }

  // A server whose patience with a silent connection ends closes it, or says 408 before (RFC 9110 §15.5.9), and having
  // said that it closes it takes no further request (RFC 9112 §9.6). One that waits for the rest of a request means
  // that request.
  mayHaveCrossed(): boolean {
    const isOver = !this.#keepAlive || this.#state === "closed";
    return this.#hasWaited && isOver && this.#requestDone && this.#informationalCount === 0;
  }

  pauseResponse(): void {
    this.#paused = true;
    this.#socket.pause();
  }

  resumeResponse(): void {
    this.#paused = false;
    this.#socket.resume();
  }

  onData(data: Buffer): void {
    this.bytesReceived += data.length;
    const turn = this.#dataPath.turn;
    turn.begin();
    this.#consuming = true;
    try {
      this.#consume(data);
    } finally {
      this.#consuming = false;
      if (this.#state === "answered" && !this.#dead) this.#settle();
      turn.end();
    }
  }

  #consume(data: Buffer): void {
    let position = 0;
    while (position < data.length && !this.#dead) {
      if (this.#state === "head") {
        if (this.#isUnsent) {
          this.#endUnsent();
          return;
        }
        position = this.#takeHead(data, position);
        if (position < 0) return;
      } else if (this.#state === "body") {
        position = this.#body.decode(data, position, this);
        if (position < 0) {
          this.#breakProtocol();
          return;
        }
      } else if (this.#state === "tunnel") {
        this.#receiver?.onResponseData(position === 0 ? data : data.subarray(position), false);
        return;
      } else {
        // Bytes behind a complete response, or without a request, answer nothing that was asked.
        this.#keepAlive = false;
        if (this.#state === "idle") this.destroy();
        return;
      }
    }
  }

  /** Gives the position behind the head, or -1 when there is none yet or the connection ends. */
  #takeHead(data: Buffer, position: number): number {
    const next = this.#head.read(data, position);
    if (next < 0) {
      if (this.#head.fault !== undefined) this.#breakProtocol();
      return -1;
    }
    return this.#startResponse() ? next : -1;
  }

  #startResponse(): boolean {
    const { text, end } = this.#head;
    this.#head.forget();
    const { maxFieldCount } = this.#settings;
    const framing = parseResponseHead(text, end, this.#method, this.#request.isUpgrade, maxFieldCount, this.#fields);
    if (framing === undefined) {
      this.#breakProtocol();
      return false;
    }
    this.bytes.decompressedHeaderBytesReceived += this.#fields.bytes;
    const receiver = this.#receiver!;
    const head = framing.head;
    if (head.status < 200 && framing.bodyBytes !== bodyTunnel) {
      this.#informationalCount += 1;
      if (this.#informationalCount > maxInformationalCount) {
        this.#breakProtocol();
        return false;
      }
      receiver.onInformational(head.status, head.headers);
      return this.#receiver === receiver;
    }
    this.#keepAlive = framing.keepAlive;
    if (!framing.keepAlive && framing.bodyBytes !== bodyTunnel) this.#owner.onLastResponse?.();
    switch (framing.bodyBytes) {
      case 0:
        this.#endResponse();
        receiver.onResponseHead(head, true);
        return true;
      case bodyTunnel:
        if (!this.#takeAccept(head.headers)) {
          this.#breakProtocol();
          return false;
        }
        this.#state = "tunnel";
        if (framing.upgrade !== "") head.upgrade = framing.upgrade;
        receiver.onResponseHead(head, false);
        return true;
      case bodyChunked:
        this.#body.startChunked();
        break;
      case bodyUntilClose:
        this.#body.startUntilClose();
        break;
      default:
        this.#body.startLength(framing.bodyBytes);
    }
    this.#state = "body";
    receiver.onResponseHead(head, false);
    return true;
  }

  /** False where the host has not understood the key that we made; to the client it says nothing. */
  #takeAccept(headers: HeaderMap): boolean {
    const { madeKey } = this.#request;
    if (madeKey === "") return true;
    const isSound = headers.get(acceptField) === acceptOfKey(madeKey);
    headers.remove(acceptField);
    return isSound;
  }

  onBodyData(chunk: Buffer, endStream: boolean): void {
    const receiver = this.#receiver;
    if (receiver === undefined) return;
    if (endStream) this.#endResponse();
    receiver.onResponseData(chunk, endStream);
  }

  onBodyEnd(trailers: HeaderMap | undefined): void {
    const receiver = this.#receiver;
    if (receiver === undefined) return;
    this.#endResponse();
    if (trailers !== undefined && this.#settings.enableTrailers) {
      this.bytes.trailerBytesReceived = fieldLineBytes(trailers);
      receiver.onResponseTrailers(trailers);
    } else receiver.onResponseData(noBytes, true);
  }

  #endResponse(): void {
    this.#state = "answered";
    this.#receiver = undefined;
  }

  // Called when nothing of the response is outstanding and nothing lies behind it in what has been read: only then may
  // the next request have the connection, or those bytes would become its answer.
  #settle(): void {
    if (this.#requestDone && this.#keepAlive) {
      this.#state = "idle";
      // The end of a response may come in the read that made its receiver pause; nobody resumes for it any more.
      if (this.#paused) this.resumeResponse();
      this.#owner.onStreamEnd(true);
    } else {
      // A request that is not complete when its answer is will never be (Envoy resets it too).
      this.#closeUnusable();
    }
  }

  #closeUnusable(): void {
    this.#owner.onStreamEnd(false);
    this.destroy();
  }

  /** The request in hand waits for the end of the round: nothing that comes answers it. */
  get #isUnsent(): boolean {
    return this.#output.bytesSent === this.#sentBefore;
  }

  // As if the connection had ended before it was given to the request (RFC 9112 §9.3: an answer belongs to the request
  // before it).
  #endUnsent(): void {
    const receiver = this.#receiver;
    this.#receiver = undefined;
    this.#output.discard();
    this.destroy();
    receiver?.onUpstreamReset("connection_termination", false);
  }

  #breakProtocol(): void {
    const receiver = this.#receiver;
    this.#receiver = undefined;
    this.destroy();
    receiver?.onUpstreamReset("protocol_error", true);
  }

  #onEnd(): void {
    this.#dataPath.turn.run(() => {
      const receiver = this.#receiver;
      if (this.#state === "tunnel" && receiver !== undefined) {
        this.#receiver = undefined;
        receiver.onResponseData(noBytes, true);
      } else if (this.#state === "body" && this.#body.untilClose) {
        this.#body.startLength(0);
        this.onBodyEnd(undefined);
        this.#settle();
      } else if (this.#state === "body" || this.#head.isPartial) {
        // A message cut short is a fault of the back end's framing, not only of the connection (Envoy: the parser's
        // error).
        this.#breakProtocol();
        return;
      } else if (this.#state === "head" && this.#isUnsent) {
        this.#endUnsent();
        return;
      }
      this.destroy();
    });
  }

  #onClose(): void {
    if (this.#state === "closed") return;
    // As at its end: a reset that cuts a message short is a fault of its framing too.
    const hasLeft = this.#state !== "head" || !this.#isUnsent;
    const isCut = (this.#state === "body" && !this.#body.untilClose) || this.#head.isPartial;
    this.#state = "closed";
    this.#head.forget();
    const receiver = this.#receiver;
    this.#receiver = undefined;
    this.#dataPath.turn.run(() => {
      receiver?.onUpstreamReset(isCut ? "protocol_error" : "connection_termination", hasLeft);
      this.#owner.onClosed(this.#error);
    });
  }
}
