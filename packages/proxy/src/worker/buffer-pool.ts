// Memory for large pieces of bodies between a read and a write. A new buffer for each would make V8 collect the whole
// heap again and again for memory that lies outside of it (measured on 1 MB answers: 1250 µs of user time each, 120
// with the pool).

/** One read of a socket and a head before it. */
const pooledBufferBytes = 65_536 + 2048;
/** What is kept for later; more than that is left to the collector. */
const maxKept = 64;

export class BufferPool {
  readonly #kept: Buffer[] = [];

  /** A buffer of exactly that many bytes, with anything in it. */
  take(bytes: number): Buffer {
    if (bytes > pooledBufferBytes) return Buffer.allocUnsafeSlow(bytes);
    const whole = this.#kept.pop() ?? Buffer.allocUnsafeSlow(pooledBufferBytes);
    return whole.subarray(0, bytes);
  }

  /** Takes back what `take` gave, once nobody reads it any more. */
  give(buffer: Buffer): void {
    if (buffer.buffer.byteLength !== pooledBufferBytes || this.#kept.length >= maxKept) return;
    this.#kept.push(Buffer.from(buffer.buffer, 0, pooledBufferBytes));
  }
}
