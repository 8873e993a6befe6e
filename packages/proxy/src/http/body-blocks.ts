// A body, or its beginning, that has to be kept: for another try, or while a filter holds the request. Pieces come in
// whatever size a client likes, and a buffer for each byte would cost a hundred times what its limit counts: small ones
// share a block.

const blockBytes = 4096;

export class BodyBlocks {
  readonly #whole: Buffer[] = [];
  #open: Buffer | undefined = undefined;
  #openBytes = 0;
  #bytes = 0;

  get bytes(): number {
    return this.#bytes;
  }

  /** In order; valid until more is kept. */
  get all(): readonly Buffer[] {
    return this.#open === undefined ? this.#whole : [...this.#whole, this.#open.subarray(0, this.#openBytes)];
  }

  /** `chunk` is a view on a read buffer. */
  keep(chunk: Buffer): void {
    // Most bodies come in one piece.
    if (this.#bytes === 0 || chunk.length >= blockBytes) {
      this.#close();
      // An empty one may be the end that there is.
      if (chunk.length > 0 || this.#whole.length === 0) this.#whole.push(Buffer.from(chunk));
    } else if (chunk.length > 0) {
      if (this.#openBytes + chunk.length > blockBytes) this.#close();
      this.#open ??= Buffer.allocUnsafe(blockBytes);
      chunk.copy(this.#open, this.#openBytes);
      this.#openBytes += chunk.length;
    }
    this.#bytes += chunk.length;
  }

  #close(): void {
    if (this.#open !== undefined) this.#whole.push(this.#open.subarray(0, this.#openBytes));
    this.#open = undefined;
    this.#openBytes = 0;
  }
}
