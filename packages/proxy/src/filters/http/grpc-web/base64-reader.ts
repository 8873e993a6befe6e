// Base64 that comes in chunks, each part of which may end in padding of its own (PROTOCOL-WEB.md: "the implementation
// may send base64-encoded chunks with potential padding"). Strict otherwise: RFC 4648 §3.3, §3.5.

const padding = 64;
const none = 255;
const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=";
const values = new Uint8Array(256).fill(none);
for (const [value, character] of Buffer.from(alphabet).entries()) values[character] = value;

export class Base64Reader {
  /** Bits of a group of four characters that is not complete, and how many of its characters have come. */
  #bits = 0;
  #characters = 0;
  #paddings = 0;

  /** Undefined where this is no base64. */
  read(text: Buffer): Buffer | undefined {
    const bytes = Buffer.allocUnsafe(Math.ceil(((text.length + 3) * 3) / 4));
    let length = 0;
    for (const character of text) {
      const value = values[character]!;
      if (value === none) return undefined;
      if (value === padding) {
        if (this.#characters < 2) return undefined;
        this.#paddings += 1;
      } else if (this.#paddings > 0) {
        return undefined;
      }
      this.#bits = this.#bits * 64 + (value === padding ? 0 : value);
      this.#characters += 1;
      if (this.#characters < 4) continue;
      // What padding stands for is zero.
      if (this.#bits % 256 ** this.#paddings !== 0) return undefined;
      bytes.writeUIntBE(this.#bits, length, 3);
      length += 3 - this.#paddings;
      this.#bits = 0;
      this.#characters = 0;
      this.#paddings = 0;
    }
    return bytes.subarray(0, length);
  }

  /** Nothing of a group is missing. */
  get isComplete(): boolean {
    return this.#characters === 0;
  }
}
