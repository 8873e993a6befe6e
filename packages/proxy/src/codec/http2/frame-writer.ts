// The frames that we send, on their way to the connection's one write a turn (RFC 9113 §6).
import type { HeaderMap } from "../../http/header-map.ts";
import { latin1Write } from "../../http/latin1-write.ts";
import {
  defaultMaxFrameBytes,
  frameFlags,
  frameHeaderBytes,
  frameTypes,
  preface,
  settingIds,
  writeFrameHeader,
} from "./frame.ts";
import type { FrameOutput } from "./frame-output.ts";
import { HpackEncoder, maxEncodedBytes } from "./hpack/hpack-encoder.ts";
import type { Http2Options } from "./http2-options.ts";
import type { Http2Stats } from "./http2-stats.ts";

const pingPayload: Buffer = Buffer.alloc(8);

export class FrameWriter {
  readonly encoder = new HpackEncoder();
  readonly #output: FrameOutput;
  readonly #stats: Http2Stats;
  /** Answers to the peer's frames that wait for the socket. */
  #waitingAnswers = 0;
  /** The field section that is being written stands where it leaves from; else beside, and is cut into frames. */
  #isInPlace = true;
  /** Heads and trailers that do, counted from when the socket is full. */
  waitingHeads = 0;

  constructor(output: FrameOutput, stats: Http2Stats) {
    this.#output = output;
    this.#stats = stats;
  }

  preface(): void {
    const output = this.#output;
    output.reserve(preface.length);
    latin1Write(output.bytes, preface, output.at);
    output.at += preface.length;
  }

  settings(options: Http2Options, isServer: boolean, maxFieldListBytes: number): void {
    const settings: [number, number][] = [
      [settingIds.headerTableSize, options.headerTableBytes],
      [settingIds.initialWindowSize, options.initialStreamWindowBytes],
      [settingIds.maxHeaderListSize, maxFieldListBytes],
    ];
    if (isServer) settings.push([settingIds.maxConcurrentStreams, options.maxConcurrentStreams]);
    else settings.push([settingIds.enablePush, 0]);
    if (options.allowConnect) settings.push([settingIds.enableConnectProtocol, 1]);
    const output = this.#output;
    output.beginFrame(settings.length * 6, frameTypes.settings, 0, 0);
    for (const [id, value] of settings) {
      output.bytes[output.at++] = id >>> 8;
      output.bytes[output.at++] = id;
      output.writeUint32(value);
    }
  }

  /**
   * The encoder, ready to write a head or trailers with such entries and `moreBytes` of names and values of other
   * fields, at most eight. `endFields` ends the frame.
   */
  beginFields(entries: readonly string[], moreBytes: number): HpackEncoder {
    const most = maxEncodedBytes(entries, moreBytes);
    const { encoder } = this;
    const output = this.#output;
    this.#isInPlace = most <= defaultMaxFrameBytes;
    if (this.#isInPlace) {
      output.reserve(frameHeaderBytes + most);
      encoder.begin(output.bytes, output.at + frameHeaderBytes);
    } else {
      encoder.begin(Buffer.allocUnsafe(most), 0);
    }
    return encoder;
  }

  /** As HEADERS and, where it is long, CONTINUATIONs (§6.2, §6.10); gives how many bytes they are. */
  endFields(streamId: number, endStream: boolean): number {
    const { encoder } = this;
    const output = this.#output;
    this.waitingHeads = output.waitingBytes > 0 ? this.waitingHeads + 1 : 0;
    const flags = endStream ? frameFlags.endStream : 0;
    if (this.#isInPlace) {
      const length = encoder.at - output.at - frameHeaderBytes;
      writeFrameHeader(output.bytes, output.at, length, frameTypes.headers, flags | frameFlags.endHeaders, streamId);
      output.at = encoder.at;
      return length + frameHeaderBytes;
    }
    const { bytes, at: total } = encoder;
    for (let at = 0; at < total; at += defaultMaxFrameBytes) {
      const end = Math.min(total, at + defaultMaxFrameBytes);
      const type = at === 0 ? frameTypes.headers : frameTypes.continuation;
      const endHeaders = end === total ? frameFlags.endHeaders : 0;
      output.beginFrame(end - at, type, (at === 0 ? flags : 0) | endHeaders, streamId);
      output.copy(bytes, at, end);
    }
    return total + Math.ceil(total / defaultMaxFrameBytes) * frameHeaderBytes;
  }

  /** Gives how many bytes they are. */
  trailers(streamId: number, { entries }: HeaderMap): number {
    this.#stats.trailers.increment();
    this.beginFields(entries, 0).fields(entries);
    return this.endFields(streamId, true);
  }

  /** Bytes of a body as DATA frames, of which the last one may end the stream. */
  data(streamId: number, bytes: Buffer, start: number, end: number, endStream: boolean): void {
    const output = this.#output;
    for (let at = start; at < end; at += defaultMaxFrameBytes) {
      const frameEnd = Math.min(end, at + defaultMaxFrameBytes);
      output.beginFrame(
        frameEnd - at,
        frameTypes.data,
        endStream && frameEnd === end ? frameFlags.endStream : 0,
        streamId,
      );
      output.copy(bytes, at, frameEnd);
    }
  }

  /** An end without data. */
  end(streamId: number): void {
    this.#output.beginFrame(0, frameTypes.data, frameFlags.endStream, streamId);
  }

  windowUpdate(streamId: number, bytes: number): void {
    this.#output.beginFrame(4, frameTypes.windowUpdate, 0, streamId);
    this.#output.writeUint32(bytes);
  }

  goAway(lastStreamId: number, errorCode: number): void {
    this.#stats.goAwaysSent.increment();
    this.#output.beginFrame(8, frameTypes.goAway, 0, 0);
    this.#output.writeUint32(lastStreamId);
    this.#output.writeUint32(errorCode);
  }

  ping(): void {
    this.#output.beginFrame(8, frameTypes.ping, 0, 0);
    this.#output.copy(pingPayload, 0, 8);
  }

  // What the peer's frames made us say. Each gives how many such wait, counted from when the socket is full.

  reset(streamId: number, errorCode: number): number {
    this.#output.beginFrame(4, frameTypes.rstStream, 0, streamId);
    this.#output.writeUint32(errorCode);
    return this.#countAnswer();
  }

  settingsAck(): number {
    this.#output.beginFrame(0, frameTypes.settings, frameFlags.ack, 0);
    return this.#countAnswer();
  }

  /** With the eight bytes of the peer's. */
  pingAck(bytes: Buffer, start: number): number {
    this.#output.beginFrame(8, frameTypes.ping, frameFlags.ack, 0);
    this.#output.copy(bytes, start, start + 8);
    return this.#countAnswer();
  }

  #countAnswer(): number {
    this.#waitingAnswers = this.#output.waitingBytes > 0 ? this.#waitingAnswers + 1 : 0;
    return this.#waitingAnswers;
  }

  /** The socket has taken what was written. */
  onDrained(): void {
    this.#waitingAnswers = 0;
    this.waitingHeads = 0;
  }
}
