// Counts the messages of one direction of a gRPC call by their frame headers alone: a flag, four bytes of length, and
// as many bytes that are passed over (Envoy: `Grpc::FrameInspector`).

const headerBytes = 5;

export class GrpcFrameCounter {
  /** Messages that have begun. */
  count = 0;
  /** Of a header that chunks cut in two: so many of its bytes have come, and this is the length so far. */
  #headerSeen = 0;
  #length = 0;
  /** Of the message that is passing. */
  #bytesLeft = 0;

  /** How many messages begin in `chunk`. */
  inspect(chunk: Buffer): number {
    const before = this.count;
    const end = chunk.length;
    let at = 0;
    while (at < end) {
      if (this.#bytesLeft > 0) {
        const passed = Math.min(this.#bytesLeft, end - at);
        this.#bytesLeft -= passed;
        at += passed;
      } else if (this.#headerSeen === 0 && end - at >= headerBytes) {
        this.count += 1;
        this.#bytesLeft = chunk.readUInt32BE(at + 1);
        at += headerBytes;
      } else {
        this.#takeHeaderByte(chunk[at]!);
        at += 1;
      }
    }
    return this.count - before;
  }

  #takeHeaderByte(byte: number): void {
    if (this.#headerSeen === 0) {
      this.count += 1;
      this.#length = 0;
    } else {
      this.#length = this.#length * 256 + byte;
    }
    this.#headerSeen += 1;
    if (this.#headerSeen < headerBytes) return;
    this.#headerSeen = 0;
    this.#bytesLeft = this.#length;
  }
}
