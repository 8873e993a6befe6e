// The body of one HTTP/1.1 message, out of chunks cut anywhere: by length, chunked (RFC 9112 §7.1) or until the
// connection closes. One instance serves all messages of a connection in turn.
import { HeaderMap } from "../../http/header-map.ts";
import { latin1Slice } from "../../http/latin1-slice.ts";
import { FieldSection } from "./field-section.ts";
import { HeadFields, readFields } from "./head-fields.ts";

/** Longest chunk-size line with its extensions. */
const maxChunkLineBytes = 4096;
/** Chunk extensions of one body together; a peer could otherwise send nothing but extensions for ever. */
const maxChunkExtensionBytes = 16_384;

/**
 * - `length`: the next `remaining` bytes are the body.
 * - `chunk-size`: collecting a chunk-size line.
 * - `chunk-data`: the next `remaining` bytes are of the current chunk.
 * - `chunk-end`: the CRLF behind a chunk is due.
 * - `trailers`: behind the last chunk, collecting field lines up to the empty one.
 * - `until-close`: everything is body.
 * - `done`: the body is complete.
 */
type State = "length" | "chunk-size" | "chunk-data" | "chunk-end" | "trailers" | "until-close" | "done";

export interface BodySink {
  /** A view that is valid during the call. */
  onBodyData(chunk: Buffer, endStream: boolean): void;
  /** The body ended without a last chunk of data; `trailers` is undefined when there were none. */
  onBodyEnd(trailers: HeaderMap | undefined): void;
}

/**
 * RFC 9112 §7.1.1 without its optional blanks, which are where parsers have disagreed; nor have they agreed on where a
 * quote ends that is never closed.
 */
const chunkLine = chunkLinePattern();

function chunkLinePattern(): RegExp {
  const token = "[!#$%&'*+\\-.^_`|~0-9A-Za-z]+";
  const quoted = '"(?:[\\t\\x20\\x21\\x23-\\x5b\\x5d-\\x7e\\x80-\\xff]|\\\\[\\t\\x20-\\x7e\\x80-\\xff])*"';
  return new RegExp(`^([0-9A-Fa-f]{1,13})((?:;${token}(?:=(?:${token}|${quoted}))?)*)$`);
}

export class BodyDecoder {
  readonly #maxTrailerBytes: number;
  readonly #maxTrailerCount: number;
  #state: State = "done";
  #remaining = 0;
  #line = "";
  #extensionBytes = 0;
  #trailers: FieldSection | undefined = undefined;

  constructor(maxTrailerBytes: number, maxTrailerCount: number) {
    this.#maxTrailerBytes = maxTrailerBytes;
    this.#maxTrailerCount = maxTrailerCount;
  }

  get done(): boolean {
    return this.#state === "done";
  }

  get untilClose(): boolean {
    return this.#state === "until-close";
  }

  startLength(bytes: number): void {
    this.#state = bytes === 0 ? "done" : "length";
    this.#remaining = bytes;
  }

  startChunked(): void {
    this.#state = "chunk-size";
    this.#line = "";
    this.#extensionBytes = 0;
  }

  startUntilClose(): void {
    this.#state = "until-close";
  }

  /**
   * Feeds `data` from `position` on; gives the position behind the body's end, or `data.length` while it goes on, or -1
   * when the coding is broken. The sink may make the owner stop: it then asks `done` or feeds no more.
   */
  decode(data: Buffer, position: number, sink: BodySink): number {
    while (position < data.length) {
      switch (this.#state) {
        case "done":
          return position;
        case "until-close":
          sink.onBodyData(position === 0 ? data : data.subarray(position), false);
          return data.length;
        case "length":
        case "chunk-data":
          position = this.#takeData(data, position, sink);
          break;
        case "chunk-size":
        case "chunk-end":
          position = this.#takeLine(data, position);
          if (position < 0) return -1;
          break;
        case "trailers":
          position = this.#takeTrailers(data, position, sink);
          if (position < 0) return -1;
          break;
        default:
          throw new Error("unreachable body state");
      }
    }
    return position;
  }

  #takeData(data: Buffer, position: number, sink: BodySink): number {
    const end = Math.min(data.length, position + this.#remaining);
    this.#remaining -= end - position;
    let endStream = false;
    if (this.#remaining === 0) {
      if (this.#state === "length") {
        this.#state = "done";
        endStream = true;
      } else {
        this.#state = "chunk-end";
      }
    }
    sink.onBodyData(position === 0 && end === data.length ? data : data.subarray(position, end), endStream);
    return end;
  }

  #takeLine(data: Buffer, position: number): number {
    const lineFeedAt = data.indexOf(10, position);
    const end = lineFeedAt < 0 ? data.length : lineFeedAt + 1;
    if (this.#line.length + end - position > maxChunkLineBytes) return -1;
    this.#line += latin1Slice(data, position, end);
    if (this.#state === "chunk-end" && !"\r\n".startsWith(this.#line)) return -1;
    if (lineFeedAt < 0) return end;
    return this.#finishChunkLine() ? end : -1;
  }

  #finishChunkLine(): boolean {
    const line = this.#line;
    this.#line = "";
    if (!line.endsWith("\r\n")) return false;
    if (this.#state === "chunk-end") {
      this.#state = "chunk-size";
      return line.length === 2;
    }
    const match = chunkLine.exec(line.slice(0, -2));
    if (match === null) return false;
    this.#extensionBytes += match[2]?.length ?? 0;
    if (this.#extensionBytes > maxChunkExtensionBytes) return false;
    this.#remaining = Number.parseInt(match[1]!, 16);
    this.#state = this.#remaining === 0 ? "trailers" : "chunk-data";
    return true;
  }

  #takeTrailers(data: Buffer, position: number, sink: BodySink): number {
    if (this.#trailers === undefined && data[position] === 13 && data[position + 1] === 10) {
      this.#state = "done";
      sink.onBodyEnd(undefined);
      return position + 2;
    }
    const section = (this.#trailers ??= new FieldSection(this.#maxTrailerBytes, this.#maxTrailerCount));
    const next = section.take(data, position);
    if (next < 0) return section.fault === undefined ? data.length : -1;
    this.#trailers = undefined;
    const { text } = section;
    if (text === "") {
      this.#state = "done";
      sink.onBodyEnd(undefined);
      return next;
    }
    const fields = new HeadFields();
    if (readFields(text, 0, text.length, this.#maxTrailerCount, fields) !== undefined) return -1;
    // Fields that frame or route a message have no place behind it (RFC 9110 §6.5.1).
    if (fields.contentLengthCount + fields.transferEncodingCount + fields.hostCount > 0) return -1;
    this.#state = "done";
    sink.onBodyEnd(new HeaderMap(fields.entries));
    return next;
  }
}
