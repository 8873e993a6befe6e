// Messages of gRPC within the bytes of a stream: a flag and four bytes of length before each (gRPC over HTTP/2,
// "Length-Prefixed-Message").

export const prefixBytes = 5;

export function framed(message: Uint8Array): Buffer {
  const bytes = Buffer.allocUnsafe(prefixBytes + message.length);
  bytes[0] = 0;
  bytes.writeUInt32BE(message.length, 1);
  bytes.set(message, prefixBytes);
  return bytes;
}

/** Room for what comes of a message at first; it doubles, up to the message's length. */
const firstBodyBytes = 4096;

/**
 * Puts messages together, each in memory of its own. It holds one at most, in one piece, however small the pieces are
 * that it comes in.
 */
export class MessageReader {
  readonly #maxMessageBytes: number;
  readonly #onMessage: (message: Buffer) => void;
  readonly #prefix = Buffer.alloc(prefixBytes);
  #prefixUsed = 0;
  /** Of the message that is coming; undefined until its prefix has come. */
  #length: number | undefined;
  #body: Buffer = Buffer.alloc(0);
  #bodyUsed = 0;

  constructor(maxMessageBytes: number, onMessage: (message: Buffer) => void) {
    this.#maxMessageBytes = maxMessageBytes;
    this.#onMessage = onMessage;
  }

  /** Of the message that is coming. */
  get keptBytes(): number {
    return this.#body.length;
  }

  /**
   * `chunk` may be a view on a read buffer. Returns what is wrong with the stream, after which nothing more may be
   * given; undefined = all is well.
   */
  take(chunk: Buffer): string | undefined {
    let at = 0;
    for (;;) {
      if (this.#length === undefined) {
        const part = chunk.copy(this.#prefix, this.#prefixUsed, at);
        this.#prefixUsed += part;
        at += part;
        if (this.#prefixUsed < prefixBytes) return undefined;
        if (this.#prefix[0] !== 0) return "a message is compressed, though nobody has asked for that";
        const length = this.#prefix.readUInt32BE(1);
        if (length > this.#maxMessageBytes) {
          return `a message of ${length} bytes is larger than the limit of ${this.#maxMessageBytes}`;
        }
        this.#length = length;
      }
      const end = Math.min(chunk.length, at + this.#length - this.#bodyUsed);
      this.#keep(chunk, at, end, this.#length);
      at = end;
      if (this.#bodyUsed < this.#length) return undefined;
      const message = this.#body;
      this.#prefixUsed = 0;
      this.#length = undefined;
      this.#body = Buffer.alloc(0);
      this.#bodyUsed = 0;
      this.#onMessage(message);
    }
  }

  #keep(chunk: Buffer, start: number, end: number, length: number): void {
    const needed = this.#bodyUsed + end - start;
    if (needed > this.#body.length) {
      const larger = Buffer.allocUnsafeSlow(Math.min(length, Math.max(needed, 2 * this.#body.length, firstBodyBytes)));
      this.#body.copy(larger, 0, 0, this.#bodyUsed);
      this.#body = larger;
    }
    chunk.copy(this.#body, this.#bodyUsed, start, end);
    this.#bodyUsed = needed;
  }
}
