// Cuts what arrives on a connection into frames. Payloads are handed over whole, those of DATA as they come: a body is
// never gathered here.
import { defaultMaxFrameBytes, errorCodes, frameFlags, frameHeaderBytes, frameTypes } from "./frame.ts";

export interface FrameSink {
  /** A whole frame but DATA; the payload is a view that is valid during the call. */
  onFrame(type: number, flags: number, streamId: number, bytes: Buffer, start: number, end: number): void;
  /** A DATA frame begins. `payloadBytes` count for flow control, padding included; `dataBytes` of them are data. */
  onDataFrame(streamId: number, payloadBytes: number, dataBytes: number, endStream: boolean): void;
  /** A piece of it; `isLast` once a frame, with the last one, which may be empty. */
  onData(bytes: Buffer, start: number, end: number, isLast: boolean): void;
  /** The bytes are no frames of HTTP/2; nothing more is read (§5.4.1). */
  onBrokenFrame(errorCode: number, what: string): void;
}

/**
 * - `header`: the nine bytes before a payload.
 * - `payload`: a payload is gathered whole.
 * - `padLength`: the first byte of a padded DATA frame.
 * - `data`: bytes of a body pass.
 * - `padding`: bytes behind them are thrown away.
 * - `broken`: nothing is read any more.
 */
type State = "header" | "payload" | "padLength" | "data" | "padding" | "broken";

export class FrameReader {
  readonly #sink: FrameSink;
  #state: State = "header";
  /** The part of a header or a payload that has come; made when a read ends within one. */
  #gathered: Buffer | undefined = undefined;
  #gatheredBytes = 0;
  #length = 0;
  #type = 0;
  #flags = 0;
  #streamId = 0;
  /** Of a DATA frame, what has not come. */
  #dataLeft = 0;
  #paddingLeft = 0;

  constructor(sink: FrameSink) {
    this.#sink = sink;
  }

  /** A frame has come in part. */
  get isWithinFrame(): boolean {
    return this.#state !== "header" || this.#gatheredBytes > 0;
  }

  /** Nothing is read from now on. */
  stop(): void {
    this.#state = "broken";
    this.#gathered = undefined;
  }

  /** `bytes` is a view that is valid during the call. */
  read(bytes: Buffer, start: number): void {
    let at = start;
    // A payload of no bytes is complete with its header.
    while (at < bytes.length || (this.#state === "payload" && this.#length === 0)) {
      switch (this.#state) {
        case "header":
          at = this.#readHeader(bytes, at);
          break;
        case "payload":
          at = this.#readPayload(bytes, at);
          break;
        case "padLength":
          at = this.#readPadLength(bytes, at);
          break;
        case "data":
          at = this.#readData(bytes, at);
          break;
        case "padding":
          at = this.#skipPadding(bytes, at);
          break;
        case "broken":
          return;
      }
    }
  }

  #readHeader(bytes: Buffer, at: number): number {
    if (this.#gatheredBytes === 0 && bytes.length - at >= frameHeaderBytes) {
      this.#begin(bytes, at);
      return at + frameHeaderBytes;
    }
    const next = this.#gather(bytes, at, frameHeaderBytes);
    if (this.#gatheredBytes === frameHeaderBytes) {
      this.#gatheredBytes = 0;
      this.#begin(this.#gathered!, 0);
    }
    return next;
  }

  #begin(bytes: Buffer, at: number): void {
    this.#length = (bytes[at]! << 16) | (bytes[at + 1]! << 8) | bytes[at + 2]!;
    this.#type = bytes[at + 3]!;
    this.#flags = bytes[at + 4]!;
    this.#streamId = bytes.readUInt32BE(at + 5) & 0x7fff_ffff;
    if (this.#length > defaultMaxFrameBytes) {
      this.#break(errorCodes.frameSizeError, "a frame of more than 16384 bytes");
    } else if (this.#type !== frameTypes.data) {
      this.#state = "payload";
    } else if ((this.#flags & frameFlags.padded) === 0) {
      this.#beginData(this.#length, 0);
    } else if (this.#length === 0) {
      this.#break(errorCodes.frameSizeError, "a padded DATA frame without the length of its padding");
    } else {
      this.#state = "padLength";
    }
  }

  #readPayload(bytes: Buffer, at: number): number {
    const length = this.#length;
    if (this.#gatheredBytes === 0 && bytes.length - at >= length) {
      this.#state = "header";
      this.#sink.onFrame(this.#type, this.#flags, this.#streamId, bytes, at, at + length);
      return at + length;
    }
    const next = this.#gather(bytes, at, length);
    if (this.#gatheredBytes < length) return next;
    const gathered = this.#gathered!;
    this.#gathered = undefined;
    this.#gatheredBytes = 0;
    this.#state = "header";
    this.#sink.onFrame(this.#type, this.#flags, this.#streamId, gathered, 0, length);
    return next;
  }

  #readPadLength(bytes: Buffer, at: number): number {
    const padding = bytes[at]!;
    // §6.1: padding that leaves no place for itself.
    if (padding >= this.#length) this.#break(errorCodes.protocolError, "padding longer than its frame");
    else this.#beginData(this.#length - 1 - padding, padding);
    return at + 1;
  }

  #beginData(dataBytes: number, paddingBytes: number): void {
    this.#state = "data";
    this.#dataLeft = dataBytes;
    this.#paddingLeft = paddingBytes;
    this.#sink.onDataFrame(this.#streamId, this.#length, dataBytes, (this.#flags & frameFlags.endStream) !== 0);
    if (dataBytes === 0) this.#passData(noBytes, 0, 0);
  }

  #readData(bytes: Buffer, at: number): number {
    const end = Math.min(bytes.length, at + this.#dataLeft);
    this.#dataLeft -= end - at;
    this.#passData(bytes, at, end);
    return end;
  }

  #passData(bytes: Buffer, start: number, end: number): void {
    if (this.#state === "broken") return;
    const isLast = this.#dataLeft === 0;
    if (isLast) this.#state = this.#paddingLeft > 0 ? "padding" : "header";
    this.#sink.onData(bytes, start, end, isLast);
  }

  #skipPadding(bytes: Buffer, at: number): number {
    const end = Math.min(bytes.length, at + this.#paddingLeft);
    this.#paddingLeft -= end - at;
    if (this.#paddingLeft === 0) this.#state = "header";
    return end;
  }

  /** Keeps what has come of `wanted` bytes; gives the position behind it. */
  #gather(bytes: Buffer, at: number, wanted: number): number {
    const end = Math.min(bytes.length, at + wanted - this.#gatheredBytes);
    let gathered = this.#gathered;
    if (gathered === undefined || gathered.length < wanted) {
      gathered = Buffer.allocUnsafe(wanted);
      this.#gathered = gathered;
    }
    bytes.copy(gathered, this.#gatheredBytes, at, end);
    this.#gatheredBytes += end - at;
    return end;
  }

  #break(errorCode: number, what: string): void {
    this.stop();
    this.#sink.onBrokenFrame(errorCode, what);
  }
}

const noBytes = Buffer.alloc(0);
