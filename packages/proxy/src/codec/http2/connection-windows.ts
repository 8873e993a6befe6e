// How many bytes of bodies one connection may carry each way (RFC 9113 §5.2, §6.9), and which streams wait for their
// turn: those that have waited go behind those that come, so that each gets one.
import type { FloodGuard } from "./flood-guard.ts";
import { defaultMaxFrameBytes, defaultWindowBytes, frameHeaderBytes, maxInteger } from "./frame.ts";
import type { FrameOutput } from "./frame-output.ts";
import type { FrameWriter } from "./frame-writer.ts";

/** What a stream has to do with it. */
export interface SendingStream {
  readonly id: number;
  /** Bytes of bodies that the peer lets us send on it. */
  sendWindowBytes: number;
  /** In frames, with their headers. */
  framedBytesSent: number;
  /** Writes of what waits what the windows allow; false when something waits still. */
  flushWaiting(): boolean;
}

export class ConnectionWindows {
  readonly #output: FrameOutput;
  readonly #frames: FrameWriter;
  readonly #floods: FloodGuard;
  readonly #initialBytes: number;
  readonly #isOver: () => boolean;
  #sendBytes = defaultWindowBytes;
  #receiveBytes: number;
  /** Read, and not told to the peer yet. */
  #readBytes = 0;
  /**
   * Bytes of all streams that wait: they are bounded together, or a peer that opens no window would be sent to by all.
   */
  waitingBytes = 0;
  /** Streams with something that waits and windows that are open, in the order in which they get their turn. */
  readonly #waiting = new Set<SendingStream>();
  /** Streams of which nothing waits, whose sources have stopped for the socket. */
  readonly #stopped = new Set<SendingStream>();

  /** `isOver`: the connection has ended, and nothing more is written. */
  constructor(
    output: FrameOutput,
    frames: FrameWriter,
    floods: FloodGuard,
    initialBytes: number,
    isOver: () => boolean,
  ) {
    this.#output = output;
    this.#frames = frames;
    this.#floods = floods;
    this.#initialBytes = initialBytes;
    this.#isOver = isOver;
    this.#receiveBytes = initialBytes;
  }

  /** Ours begins as wide as the options say, which is more than SETTINGS can say. */
  start(): void {
    const more = this.#initialBytes - defaultWindowBytes;
    if (more > 0) this.#frames.windowUpdate(0, more);
  }

  /** A DATA frame has come; false where it is larger than the window. */
  take(bytes: number): boolean {
    this.#receiveBytes -= bytes;
    return this.#receiveBytes >= 0;
  }

  /** Bytes of bodies that have been read: the peer may send as many again. */
  credit(bytes: number): void {
    this.#readBytes += bytes;
    if (this.#readBytes < this.#initialBytes / 2) return;
    this.#receiveBytes += this.#readBytes;
    this.#frames.windowUpdate(0, this.#readBytes);
    this.#readBytes = 0;
  }

  /** The peer takes more; false where it would be more than there are numbers for. */
  widen(bytes: number): boolean {
    this.#sendBytes += bytes;
    return this.#sendBytes <= maxInteger;
  }

  isOutputOver(): boolean {
    return this.#output.isOverHighWatermark();
  }

  /**
   * Writes of `chunk` from `start` what the windows and the socket allow, as DATA frames; gives how many bytes. The
   * last one ends the stream where `endStream` says so and nothing is left.
   */
  write(stream: SendingStream, chunk: Buffer, start: number, endStream: boolean): number {
    const left = chunk.length - start;
    if (left === 0 || this.#output.isOverHighWatermark()) return 0;
    const bytes = Math.min(left, stream.sendWindowBytes, this.#sendBytes);
    if (bytes <= 0) return 0;
    stream.sendWindowBytes -= bytes;
    this.#sendBytes -= bytes;
    const frames = Math.ceil(bytes / defaultMaxFrameBytes);
    stream.framedBytesSent += bytes + frames * frameHeaderBytes;
    this.#floods.dataFramesSent(frames);
    this.#frames.data(stream.id, chunk, start, start + bytes, endStream && bytes === left);
    return bytes;
  }

  /**
   * Something of it waits. A stream whose own window is closed gets its turn when that opens: were it asked each time
   * that the connection's does, a client could make us ask a thousand of them with a frame of 13 bytes.
   */
  waitForTurn(stream: SendingStream): void {
    if (stream.sendWindowBytes > 0) this.#waiting.add(stream);
  }

  /** Nothing of it waits; it hears when the socket takes more. */
  waitForSocket(stream: SendingStream): void {
    this.#stopped.add(stream);
  }

  forget(stream: SendingStream): void {
    this.#waiting.delete(stream);
    this.#stopped.delete(stream);
  }

  /** The socket has taken what was written. */
  onDrained(): void {
    for (const stream of Array.from(this.#stopped)) {
      if (this.#isOver()) return;
      this.#stopped.delete(stream);
      this.flush(stream);
    }
    this.takeTurns();
  }

  /** The connection's window has opened, or the socket: each stream that waits for them gets one turn at the most. */
  takeTurns(): void {
    for (let left = this.#waiting.size; left > 0 && this.#waiting.size > 0; left -= 1) {
      if (this.#isOver() || this.#sendBytes <= 0 || this.#output.isOverHighWatermark()) return;
      // Who waits again stands at the end.
      this.flush(this.#waiting.values().next().value!);
    }
  }

  flush(stream: SendingStream): void {
    this.#waiting.delete(stream);
    if (!stream.flushWaiting()) this.waitForTurn(stream);
  }
}
