// What both ends of HTTP/2 have of a stream: its two windows, what waits for them, and which of its sides are over
// (RFC 9113 §5.1, §5.2).
import type { HeaderMap } from "../../http/header-map.ts";
import type { StreamBytes } from "../../http/stream-bytes.ts";
import type { StreamResetReason } from "../stream-codec.ts";
import type { Http2Session } from "./http2-session.ts";
import { defaultMaxFrameBytes, errorCodes, frameHeaderBytes } from "./frame.ts";

export const noBytes: Buffer = Buffer.alloc(0);
/** Most streams never wait: they share it until one does. */
const nothingWaits: Buffer[] = [];

/** Of frames whose payload is four bytes: RST_STREAM and WINDOW_UPDATE. */
const smallFrameBytes = frameHeaderBytes + 4;

export abstract class Http2Stream implements StreamBytes {
  /** 0 = a stream of ours whose head has not been written. */
  id: number;
  protected readonly session: Http2Session;
  /** Bytes of bodies that the peer lets us send: none before our head. */
  sendWindowBytes = 0;
  /** Bytes that the peer may still send. */
  receiveWindowBytes: number;
  /** Of the peer, one behind the other, which bring no byte and end nothing. */
  emptyFrames = 0;
  /** Read, and not told to the peer yet. */
  #readBytes = 0;
  /** Received while whoever reads had enough. */
  #heldBytes = 0;
  #isPaused = false;
  /** What the peer has declared of its body, and has not sent; -1 = nothing is declared. */
  #declaredLeftBytes = -1;
  /** The peer has ended its side, or nothing of it is of interest any more. */
  isReceiveOver = false;
  /** END_STREAM or a reset has been written. */
  isSendOver = false;
  /** Behind the windows, or a connection that does not take more. */
  #waiting = nothingWaits;
  #waitingBytes = 0;
  /** What comes behind what waits: the end, or trailers with it. */
  #waitingEnd: "none" | "end" | HeaderMap = "none";
  #wasOver = false;
  framedBytesSent = 0;
  wireBytesReceived = 0;
  headerBytesSent = 0;
  headerBytesReceived = 0;
  decompressedHeaderBytesSent = 0;
  decompressedHeaderBytesReceived = 0;

  constructor(id: number, session: Http2Session) {
    this.id = id;
    this.session = session;
    this.receiveWindowBytes = session.options.initialStreamWindowBytes;
  }

  /** A piece of the peer's body, or its end. */
  protected abstract receiveData(bytes: Buffer, endStream: boolean): void;
  /** Everything that waited has been handed to the connection. */
  protected abstract onDrained(): void;
  /** The stream has ended before its time: the peer's `errorCode`, or the connection's end. */
  protected abstract onReset(reason: StreamResetReason): void;
  /** END_STREAM has been written. */
  protected abstract onSendEnd(): void;
  /** Both sides are over; no more is heard of the stream. */
  protected abstract onClosed(): void;

  get bytes(): StreamBytes {
    return this;
  }

  /** What waits for a window counts as if it had left. */
  get wireBytesSent(): number {
    const waiting = this.#waitingBytes;
    return this.framedBytesSent + waiting + Math.ceil(waiting / defaultMaxFrameBytes) * frameHeaderBytes;
  }

  /** Fields have come in so many bytes of frames, of so many of names and values. */
  countFieldsReceived(frameBytes: number, textBytes: number): void {
    this.wireBytesReceived += frameBytes;
    this.headerBytesReceived += frameBytes;
    this.decompressedHeaderBytesReceived += textBytes;
  }

  /** Those that have just been encoded. */
  protected countFieldsSent(frameBytes: number): void {
    this.framedBytesSent += frameBytes;
    this.headerBytesSent += frameBytes;
    this.decompressedHeaderBytesSent += this.session.frames.encoder.textBytes;
  }

  /** Bytes of the body that the peer has declared; not called where it has not. */
  declareBody(bytes: number): void {
    this.#declaredLeftBytes = bytes;
  }

  /** False where more or less came than was declared (RFC 9113 §8.1.1). */
  countBody(bytes: number, endStream: boolean): boolean {
    if (this.#declaredLeftBytes < 0) return true;
    this.#declaredLeftBytes -= bytes;
    return this.#declaredLeftBytes >= 0 && (!endStream || this.#declaredLeftBytes === 0);
  }

  /** Data within a frame whose size the window allowed. */
  onData(bytes: Buffer, start: number, end: number, endStream: boolean): void {
    const length = end - start;
    if (this.isReceiveOver) {
      this.session.windows.credit(length);
      return;
    }
    if (endStream) this.isReceiveOver = true;
    this.receiveData(length === 0 ? noBytes : bytes.subarray(start, end), endStream);
    if (this.#isPaused) this.#heldBytes += length;
    else this.creditBytes(length);
    if (endStream) this.closeIfOver();
  }

  /** They are read, or nobody reads them: the peer may send as many again. */
  creditBytes(bytes: number): void {
    this.session.windows.credit(bytes);
    if (this.isReceiveOver) return;
    this.#readBytes += bytes;
    // In halves of the window: not one frame for each that comes.
    if (this.#readBytes < this.session.options.initialStreamWindowBytes / 2) return;
    this.receiveWindowBytes += this.#readBytes;
    this.framedBytesSent += smallFrameBytes;
    this.session.frames.windowUpdate(this.id, this.#readBytes);
    this.#readBytes = 0;
  }

  pauseReceiving(): void {
    this.#isPaused = true;
  }

  resumeReceiving(): void {
    if (!this.#isPaused) return;
    this.#isPaused = false;
    this.#creditHeld();
  }

  #creditHeld(): void {
    const held = this.#heldBytes;
    this.#heldBytes = 0;
    this.creditBytes(held);
  }

  /** `chunk` may be a view on a read buffer. */
  sendData(chunk: Buffer, endStream: boolean): void {
    if (this.isSendOver) return;
    let sent = 0;
    if (this.#waiting.length === 0 && this.id !== 0) {
      sent = this.session.windows.write(this, chunk, 0, endStream);
      if (sent === chunk.length) {
        if (endStream) {
          // An empty last chunk waits for no window.
          if (chunk.length === 0) this.#writeEnd();
          this.endSending();
        }
        return;
      }
    }
    if (chunk.length > sent) {
      const rest = Buffer.from(sent === 0 ? chunk : chunk.subarray(sent));
      if (this.#waiting === nothingWaits) this.#waiting = [];
      this.#waiting.push(rest);
      this.#countWaiting(rest.length);
    }
    if (endStream) this.#waitingEnd = "end";
    this.session.windows.waitForTurn(this);
  }

  protected sendTrailerFields(trailers: HeaderMap): void {
    if (this.isSendOver) return;
    if (this.#waiting.length > 0 || this.id === 0) {
      this.#waitingEnd = trailers;
      return;
    }
    this.countFieldsSent(this.session.frames.trailers(this.id, trailers));
    this.endSending();
  }

  #writeEnd(): void {
    this.framedBytesSent += frameHeaderBytes;
    this.session.frames.end(this.id);
  }

  /** Something of it waits for a window or the socket. */
  get isWaiting(): boolean {
    return this.#waiting.length > 0;
  }

  /** Writes of what waits what the windows allow; false when something waits still. */
  flushWaiting(): boolean {
    const waiting = this.#waiting;
    const isEndAlone = waiting.length === 0;
    while (waiting.length > 0) {
      const first = waiting[0]!;
      const isLast = waiting.length === 1 && this.#waitingEnd === "end";
      const sent = this.session.windows.write(this, first, 0, isLast);
      this.#countWaiting(-sent);
      if (sent < first.length) {
        if (sent > 0) waiting[0] = first.subarray(sent);
        return false;
      }
      waiting.shift();
    }
    const end = this.#waitingEnd;
    this.#waitingEnd = "none";
    if (end === "end") {
      if (isEndAlone) this.#writeEnd();
      this.endSending();
    } else if (end !== "none") {
      this.countFieldsSent(this.session.frames.trailers(this.id, end));
      this.endSending();
    } else if (this.#wasOver) {
      this.#wasOver = false;
      this.onDrained();
    }
    return true;
  }

  #countWaiting(bytes: number): void {
    this.#waitingBytes += bytes;
    this.session.windows.waitingBytes += bytes;
  }

  isOverHighWatermark(): boolean {
    const { windows, bufferLimitBytes } = this.session;
    // One that waits for nothing of its own goes on, or nobody would tell it when to.
    const isAmongMany = this.#waitingBytes > 0 && windows.waitingBytes > bufferLimitBytes;
    const isOver = isAmongMany || windows.isOutputOver();
    if (isOver) this.#wasOver = true;
    if (isOver && this.#waiting.length === 0) this.session.windows.waitForSocket(this);
    return isOver;
  }

  /** Ends both sides at once, and tells the peer; nothing that waits is sent. */
  reset(errorCode: number): void {
    if (this.isSendOver && this.isReceiveOver) return;
    this.#cutOff();
    this.writeReset(errorCode);
    this.#settle();
  }

  /** Tells the peer, and no more. */
  writeReset(errorCode: number): void {
    this.framedBytesSent += smallFrameBytes;
    this.session.writeReset(this.id, errorCode);
  }

  /** The peer has reset it. */
  endByReset(errorCode: number, isServer: boolean): void {
    this.wireBytesReceived += smallFrameBytes;
    // An answer that is as long as it declared is whole (RFC 9113 §8.1). Hosts on Node's `http2` reset so instead of
    // ending it when a window of ours is closed at that moment.
    const isWhole = errorCode === errorCodes.noError && !isServer && this.#declaredLeftBytes === 0;
    if (!isWhole) return this.end(resetReasonOf(errorCode, isServer));
    this.#cutOff();
    this.receiveData(noBytes, true);
    this.#settle();
  }

  /** The connection has gone, or will have nothing to do with it. */
  end(reason: StreamResetReason): void {
    this.#cutOff();
    this.onReset(reason);
    this.#settle();
  }

  #cutOff(): void {
    this.isSendOver = true;
    this.isReceiveOver = true;
    this.forgetWaiting();
  }

  protected forgetWaiting(): void {
    this.#waiting = nothingWaits;
    this.#countWaiting(-this.#waitingBytes);
    this.#waitingEnd = "none";
    this.#wasOver = false;
  }

  /** END_STREAM has been written. */
  protected endSending(): void {
    this.isSendOver = true;
    this.onSendEnd();
    this.closeIfOver();
  }

  closeIfOver(): void {
    if (this.isSendOver && this.isReceiveOver) this.#settle();
  }

  #settle(): void {
    // What it holds is the connection's to use again.
    this.#creditHeld();
    if (this.session.forget(this)) this.onClosed();
  }
}

/** What a reset says to the peer. */
export function errorCodeOf(reason: StreamResetReason): number {
  switch (reason) {
    case "remote_refused_stream_reset":
      return errorCodes.refusedStream;
    case "protocol_error":
      return errorCodes.protocolError;
    case "local_reset":
      return errorCodes.internalError;
    default:
      return errorCodes.cancel;
  }
}

/** What a peer's reset means to whoever waits for the stream; that a client blames us is a reset like another. */
function resetReasonOf(errorCode: number, isServer: boolean): StreamResetReason {
  if (errorCode === errorCodes.refusedStream) return "remote_refused_stream_reset";
  return errorCode === errorCodes.protocolError && !isServer ? "protocol_error" : "remote_reset";
}
