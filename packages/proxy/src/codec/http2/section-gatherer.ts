// Puts the field section of a message together, which may come in several frames (RFC 9113 §4.3, §6.2, §6.10).
import { errorCodes, frameFlags, frameHeaderBytes, maxInteger } from "./frame.ts";
import type { FloodGuard } from "./flood-guard.ts";
import type { SessionFailure } from "./session-failure.ts";

/** Encoded; the bytes are valid during the call. */
export interface FieldSection {
  readonly bytes: Buffer;
  readonly start: number;
  readonly end: number;
  readonly endStream: boolean;
  /** Of its frames, with their headers. */
  readonly wireBytes: number;
}

export interface SectionSink {
  onSection(streamId: number, section: FieldSection): void;
  /** One of more than all of its limits: the connection ends. */
  onTooLong(): void;
  /** A section has begun whose end is yet to come, and has come. */
  onHeadBegin(streamId: number): void;
  onHeadEnd(): void;
}

export class SectionGatherer {
  readonly #sink: SectionSink;
  readonly #floods: FloodGuard;
  readonly #maxBytes: number;
  /** Of the section that is being gathered; 0 = none. */
  streamId = 0;
  #endsStream = false;
  #parts: Buffer[] = [];
  #bytes = 0;
  #wireBytes = 0;
  #continuations = 0;

  constructor(sink: SectionSink, floods: FloodGuard, maxBytes: number) {
    this.#sink = sink;
    this.#floods = floods;
    this.#maxBytes = maxBytes;
  }

  /** Undefined where nothing is wrong, as below. */
  headers(flags: number, streamId: number, bytes: Buffer, start: number, end: number): SessionFailure | undefined {
    if (streamId === 0) return failure(errorCodes.protocolError, "HEADERS on stream 0");
    const isPadded = (flags & frameFlags.padded) !== 0;
    const hasPriority = (flags & frameFlags.priority) !== 0;
    const from = start + (isPadded ? 1 : 0) + (hasPriority ? 5 : 0);
    // §4.2: what the flags promise has to be there.
    if (from > end) return failure(errorCodes.frameSizeError, "HEADERS without their padding's length or priority");
    // §5.3.1 of RFC 7540, which RFC 9113 §5.3.2 keeps for what it is worth: nothing depends on itself.
    if (hasPriority && (bytes.readUInt32BE(from - 5) & maxInteger) === streamId)
      return failure(errorCodes.protocolError, "a stream that depends on itself");
    const to = end - (isPadded ? bytes[start]! : 0);
    if (from > to) return failure(errorCodes.protocolError, "padding longer than its frame");
    this.streamId = streamId;
    this.#endsStream = (flags & frameFlags.endStream) !== 0;
    this.#continuations = 0;
    this.#wireBytes = frameHeaderBytes + end - start;
    return this.#add(flags, bytes, from, to);
  }

  continuation(flags: number, streamId: number, bytes: Buffer, start: number, end: number): SessionFailure | undefined {
    if (this.streamId === 0 || streamId !== this.streamId)
      return failure(errorCodes.protocolError, "CONTINUATION without its HEADERS");
    this.#continuations += 1;
    this.#wireBytes += frameHeaderBytes + end - start;
    const flood = this.#floods.continuation(this.#continuations);
    return flood === undefined ? this.#add(flags, bytes, start, end) : floodFailure(flood);
  }

  #add(flags: number, bytes: Buffer, start: number, end: number): SessionFailure | undefined {
    const isWhole = (flags & frameFlags.endHeaders) !== 0;
    if (end > start || isWhole) this.#floods.fullFrame();
    else {
      const flood = this.#floods.emptyFrame();
      if (flood !== undefined) return floodFailure(flood);
    }
    if (isWhole && this.#parts.length === 0) {
      this.#finish(bytes, start, end);
      return undefined;
    }
    this.#bytes += end - start;
    // It would have to be decoded before anything else could be.
    if (this.#bytes > this.#maxBytes) {
      this.#sink.onTooLong();
      return failure(errorCodes.enhanceYourCalm, "a field section that is too long");
    }
    this.#parts.push(Buffer.from(bytes.subarray(start, end)));
    if (isWhole) {
      const whole = Buffer.concat(this.#parts);
      this.#parts = [];
      this.#bytes = 0;
      this.#sink.onHeadEnd();
      this.#finish(whole, 0, whole.length);
    } else if (this.#parts.length === 1) {
      this.#sink.onHeadBegin(this.streamId);
    }
    return undefined;
  }

  #finish(bytes: Buffer, start: number, end: number): void {
    const { streamId } = this;
    this.streamId = 0;
    this.#sink.onSection(streamId, { bytes, start, end, endStream: this.#endsStream, wireBytes: this.#wireBytes });
  }
}

function failure(errorCode: number, what: string): SessionFailure {
  return { errorCode, what, flood: undefined };
}

function floodFailure(flood: NonNullable<SessionFailure["flood"]>): SessionFailure {
  return { errorCode: errorCodes.enhanceYourCalm, what: flood, flood };
}
