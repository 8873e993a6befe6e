// DNS over TCP: each message behind its length in two bytes (RFC 1035 §4.2.2).

/** Takes a stream apart again. It holds one message at most, and each byte is copied once, however small the pieces. */
export class LengthPrefixed {
  readonly #length = Buffer.alloc(2);
  #lengthBytes = 0;
  /** The message that comes now; undefined until its length is known. */
  #message: Buffer | undefined;
  #messageBytes = 0;

  /** The messages that are whole now; they stay valid. */
  take(chunk: Buffer): readonly Buffer[] {
    const messages: Buffer[] = [];
    for (let at = 0; at < chunk.length;) {
      if (this.#message === undefined) {
        this.#length[this.#lengthBytes] = chunk[at]!;
        this.#lengthBytes += 1;
        at += 1;
        if (this.#lengthBytes < 2) continue;
        this.#message = Buffer.alloc(this.#length.readUInt16BE(0));
        this.#messageBytes = 0;
        this.#lengthBytes = 0;
      }
      const copied = chunk.copy(this.#message, this.#messageBytes, at);
      at += copied;
      this.#messageBytes += copied;
      if (this.#messageBytes < this.#message.length) continue;
      messages.push(this.#message);
      this.#message = undefined;
    }
    return messages;
  }
}

/** @throws {RangeError} for more than 65,535 bytes */
export function withLength(message: Buffer): Buffer {
  const bytes = Buffer.allocUnsafe(2 + message.length);
  bytes.writeUInt16BE(message.length, 0);
  bytes.set(message, 2);
  return bytes;
}
