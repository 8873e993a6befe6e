// What waits to be written to one HTTP/2 connection: all frames of a turn in one buffer, which leaves in one write at
// its end. Frames are written where they leave from: gathered as text, which is made bytes at the end, they cost 2 µs
// more of 20 a request.
import type { Socket } from "node:net";
import type { BufferPool } from "../../worker/buffer-pool.ts";
import type { DataPath } from "../../worker/data-path.ts";
import { SocketWriter } from "../../worker/socket-writer.ts";
import type { Turn } from "../../worker/turn.ts";
import { frameHeaderBytes, writeFrameHeader } from "./frame.ts";

const noBytes: Buffer = Buffer.alloc(0);

export class FrameOutput {
  readonly #writer: SocketWriter;
  readonly #turn: Turn;
  readonly #buffers: BufferPool;
  readonly #limitBytes: number;
  readonly #onDrained: () => void;
  /** What is gathered, up to `at`; the rest is free for whoever has reserved it. */
  bytes: Buffer = noBytes;
  at = 0;
  #wasOver = false;
  /** Somebody is about to write frames, between which no others may come. */
  #isMakingRoom = false;

  /** `onDrained` is called when everything has left after `isOverHighWatermark` was true. */
  constructor(socket: Socket, dataPath: DataPath, limitBytes: number, onDrained: () => void) {
    this.#writer = new SocketWriter(socket, dataPath.buffers, () => this.#onAllWritten());
    this.#turn = dataPath.turn;
    this.#buffers = dataPath.buffers;
    this.#limitBytes = limitBytes;
    this.#onDrained = onDrained;
  }

  get bytesSent(): number {
    return this.#writer.bytesSent;
  }

  /** Bytes that the kernel has not taken yet; falls in steps of what was written at a time. */
  get waitingBytes(): number {
    return this.#writer.waitingBytes;
  }

  /** Of the next byte that is gathered, among all of the connection: it has left when `bytesSent` is beyond it. */
  get position(): number {
    return this.#writer.bytesSent + this.at;
  }

  isOverHighWatermark(): boolean {
    if (this.#writer.waitingBytes + this.at <= this.#limitBytes) return false;
    this.#wasOver = true;
    return true;
  }

  /** Makes room for so many bytes behind `at`; whoever writes them moves `at`. */
  reserve(count: number): void {
    if (this.at + count <= this.bytes.length) return;
    this.#isMakingRoom = true;
    this.#send();
    this.#isMakingRoom = false;
    this.bytes = this.#buffers.takeAtLeast(count);
    this.#turn.enqueue(this);
  }

  /** A frame's header, and room for its payload. */
  beginFrame(length: number, type: number, flags: number, streamId: number): void {
    this.reserve(frameHeaderBytes + length);
    writeFrameHeader(this.bytes, this.at, length, type, flags, streamId);
    this.at += frameHeaderBytes;
  }

  writeUint32(value: number): void {
    const { bytes, at } = this;
    bytes[at] = value >>> 24;
    bytes[at + 1] = value >>> 16;
    bytes[at + 2] = value >>> 8;
    bytes[at + 3] = value;
    this.at = at + 4;
  }

  /** Bytes of `source`, for which room is reserved. */
  copy(source: Buffer, start: number, end: number): void {
    source.copy(this.bytes, this.at, start, end);
    this.at += end - start;
  }

  /** A peer that takes nothing gets full buffers: each that waits is as large as a small one. */
  flush(): void {
    if (!this.#writer.isBusy) this.#send();
  }

  #send(): void {
    const { bytes, at } = this;
    if (at === 0) return;
    this.bytes = noBytes;
    this.at = 0;
    this.#writer.write(bytes.subarray(0, at));
  }

  /** Ends our side of the connection behind everything that waits, then calls back. */
  end(onEnded?: () => void): void {
    this.#send();
    this.#writer.end(onEnded);
  }

  #onAllWritten(): void {
    // What follows leaves at the end of the turn, and it is told then: who hears of it writes frames himself.
    if (this.#isMakingRoom) return;
    this.#send();
    if (!this.#wasOver || this.#writer.isBusy) return;
    this.#wasOver = false;
    this.#turn.run(this.#onDrained);
  }
}
