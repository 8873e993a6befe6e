// DNS over TCP: each message behind its length in two bytes (RFC 1035 §4.2.2).

const none: Buffer = Buffer.alloc(0);

/** Takes a stream apart again. It never holds more than one message and the piece that came last. */
export class LengthPrefixed {
  #kept: Buffer = none;

  /** The messages that are whole now; they stay valid. */
  take(chunk: Buffer): readonly Buffer[] {
    let data = this.#kept.length === 0 ? chunk : Buffer.concat([this.#kept, chunk]);
    const messages: Buffer[] = [];
    while (data.length >= 2 && data.length >= 2 + data.readUInt16BE(0)) {
      const end = 2 + data.readUInt16BE(0);
      messages.push(Buffer.from(data.subarray(2, end)));
      data = data.subarray(end);
    }
    this.#kept = data.length === 0 ? none : Buffer.from(data);
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
