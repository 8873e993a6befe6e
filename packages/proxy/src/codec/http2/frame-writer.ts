// The frames that we send of ourselves, on their way to the connection's one write a turn (RFC 9113 §6). DATA frames
// are the windows' affair.
import type { HeaderMap } from "../../http/header-map.ts";
import type { SocketOutput } from "../../worker/socket-output.ts";
import {
  defaultMaxFrameBytes,
  frameFlags,
  frameHeader,
  frameTypes,
  goAwayFrame,
  headersFrames,
  pingFrame,
  settingIds,
  settingsFrame,
  windowUpdateFrame,
} from "./frame.ts";
import { HpackEncoder } from "./hpack/hpack-encoder.ts";
import type { Http2Options } from "./http2-options.ts";
import type { Http2Stats } from "./http2-stats.ts";

export class FrameWriter {
  readonly encoder = new HpackEncoder();
  readonly #output: SocketOutput;
  readonly #stats: Http2Stats;
  /** Answers to the peer's frames that wait for the socket. */
  #waitingAnswers = 0;

  constructor(output: SocketOutput, stats: Http2Stats) {
    this.#output = output;
    this.#stats = stats;
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
    this.#output.writeBytes(settingsFrame(settings));
  }

  /** `block`: the fields, encoded. */
  head(streamId: number, block: string, endStream: boolean): void {
    this.#output.writeBytes(headersFrames(block, streamId, endStream, defaultMaxFrameBytes));
  }

  trailers(streamId: number, { entries }: HeaderMap): void {
    this.#stats.trailers.increment();
    this.head(streamId, this.encoder.begin() + this.encoder.fields(entries), true);
  }

  /** An end without data. */
  end(streamId: number): void {
    this.#output.writeBytes(frameHeader(0, frameTypes.data, frameFlags.endStream, streamId));
  }

  windowUpdate(streamId: number, bytes: number): void {
    this.#output.writeBytes(windowUpdateFrame(streamId, bytes));
  }

  goAway(lastStreamId: number, errorCode: number): void {
    this.#stats.goAwaysSent.increment();
    this.#output.writeBytes(goAwayFrame(lastStreamId, errorCode));
  }

  ping(): void {
    this.#output.writeBytes(pingFrame("\0\0\0\0\0\0\0\0", false));
  }

  /** Something that the peer's frame made us say; gives how many such wait, counted from when the socket is full. */
  answer(frame: string): number {
    this.#waitingAnswers = this.#output.waitingBytes > 0 ? this.#waitingAnswers + 1 : 0;
    this.#output.writeBytes(frame);
    return this.#waitingAnswers;
  }

  /** The socket has taken what was written. */
  onDrained(): void {
    this.#waitingAnswers = 0;
  }
}
