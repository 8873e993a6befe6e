// Messages of gRPC within the bytes of a stream: a flag and four bytes of length before each (gRPC over HTTP/2, "Length-Prefixed-Message").

export const prefixBytes = 5;

export function framed(message: Uint8Array): Buffer {
  const bytes = Buffer.allocUnsafe(prefixBytes + message.length);
  bytes[0] = 0;
  bytes.writeUInt32BE(message.length, 1);
  bytes.set(message, prefixBytes);
  return bytes;
}

/** Puts messages together. It holds one message at most, of which no byte beyond the limit is kept. */
export class MessageReader {
  readonly #maxMessageBytes: number;
  readonly #onMessage: (message: Buffer) => void;
  #chunks: Buffer[] = [];
  #bytes = 0;
  /** Of the message that is coming, with its prefix; undefined until the prefix has come. */
  #wantedBytes: number | undefined;

  constructor(maxMessageBytes: number, onMessage: (message: Buffer) => void) {
    this.#maxMessageBytes = maxMessageBytes;
    this.#onMessage = onMessage;
  }

  /** What is wrong with the stream, after which nothing more may be given; undefined = all is well. */
  take(chunk: Buffer): string | undefined {
    this.#chunks.push(chunk);
    this.#bytes += chunk.length;
    while (this.#bytes >= (this.#wantedBytes ?? prefixBytes)) {
      if (this.#wantedBytes === undefined) {
        const all = this.#joined();
        if (all[0] !== 0) return "a message is compressed, though nobody has asked for that";
        const length = all.readUInt32BE(1);
        if (length > this.#maxMessageBytes) {
          return `a message of ${length} bytes is larger than the limit of ${this.#maxMessageBytes}`;
        }
        this.#wantedBytes = prefixBytes + length;
      } else {
        const all = this.#joined();
        const end = this.#wantedBytes;
        this.#chunks = all.length > end ? [all.subarray(end)] : [];
        this.#bytes = all.length - end;
        this.#wantedBytes = undefined;
        this.#onMessage(all.subarray(prefixBytes, end));
      }
    }
    return undefined;
  }

  #joined(): Buffer {
    if (this.#chunks.length > 1) this.#chunks = [Buffer.concat(this.#chunks)];
    return this.#chunks[0]!;
  }
}
