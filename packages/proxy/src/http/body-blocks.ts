// A body, or its beginning, that has to be kept: for another try, or while a filter holds the request. Pieces come in
// whatever size a client likes, and a buffer for each byte would cost a hundred times what its limit counts: small ones
// share a block.
import type { BufferPool } from "../worker/buffer-pool.ts";

const blockBytes = 4096;
/** A block of the pool's; so much of a body has come before it takes one. */
const lentBytes = 65_536;

export class BodyBlocks {
  readonly #buffers: BufferPool | undefined;
  readonly #whole: Buffer[] = [];
  readonly #lent: Buffer[] = [];
  #open: Buffer | undefined = undefined;
  #openBytes = 0;
  #bytes = 0;

  /**
   * With `buffers`, what is behind the first 64 KiB of a long body stands in buffers of the pool, which `release` gives
   * back: new ones made the collector a third of the work of passing requests of 1 MB on.
   */
  constructor(buffers?: BufferPool) {
    this.#buffers = buffers;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** In order; valid until more is kept, or all is released. */
  get all(): readonly Buffer[] {
    return this.#open === undefined ? this.#whole : [...this.#whole, this.#open.subarray(0, this.#openBytes)];
  }

  /** `chunk` is a view on a read buffer. */
  keep(chunk: Buffer): void {
    const { length } = chunk;
    if (this.#buffers !== undefined && this.#bytes >= lentBytes) {
      this.#lend(chunk, this.#buffers);
    } else if (this.#bytes === 0 || length >= blockBytes) {
      // Most bodies come in one piece.
      this.#close();
      // An empty one may be the end that there is.
      if (length > 0 || this.#whole.length === 0) this.#whole.push(Buffer.from(chunk));
    } else if (length > 0) {
      if (this.#openBytes + length > blockBytes) this.#close();
      this.#open ??= Buffer.allocUnsafe(blockBytes);
      chunk.copy(this.#open, this.#openBytes);
      this.#openBytes += length;
    }
    this.#bytes += length;
  }

  #lend(chunk: Buffer, buffers: BufferPool): void {
    for (let at = 0; at < chunk.length;) {
      if (this.#open === undefined || this.#openBytes === this.#open.length) {
        this.#close();
        this.#open = buffers.take(lentBytes);
        this.#lent.push(this.#open);
      }
      const copied = chunk.copy(this.#open, this.#openBytes, at);
      this.#openBytes += copied;
      at += copied;
    }
  }

  /** Nothing is kept any more, and nobody reads what was: it gives what is left of it. */
  release(): undefined {
    for (const buffer of this.#lent) this.#buffers!.give(buffer);
    this.#lent.length = 0;
    this.#whole.length = 0;
    this.#open = undefined;
    this.#openBytes = 0;
    this.#bytes = 0;
    return undefined;
  }

  #close(): void {
    if (this.#open !== undefined) this.#whole.push(this.#open.subarray(0, this.#openBytes));
    this.#open = undefined;
    this.#openBytes = 0;
  }
}
