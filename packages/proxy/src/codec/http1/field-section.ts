// Lines up to the empty one, out of pieces cut anywhere: the head of a message that does not come in one read, and
// trailers. Each byte is copied and looked at once, and limits hold for what has come, not for what might.
import { latin1Slice } from "../../http/latin1-slice.ts";

const carriageReturn = 13;
const lineFeed = 10;
const leastBytes = 512;
const noBytes: Buffer = Buffer.alloc(0);

/** What is wrong with the lines so far. */
export type SectionFault = "too_large" | "too_many_lines" | "bare_lf";

export class FieldSection {
  readonly #maxBytes: number;
  readonly #maxLines: number;
  #bytes = noBytes;
  #length = 0;
  #lineStart = 0;
  #lineCount = 0;
  fault: SectionFault | undefined = undefined;

  /** `maxBytes` counts neither the end of the last line nor the empty one. */
  constructor(maxBytes: number, maxLines: number) {
    this.#maxBytes = maxBytes;
    this.#maxLines = maxLines;
  }

  /** Its complete lines, each with its end. */
  get text(): string {
    return latin1Slice(this.#bytes, 0, this.#lineStart);
  }

  /**
   * Takes on from `position`; gives the position behind the empty line, or -1 while that has not come or there is a
   * fault.
   */
  take(data: Buffer, position: number): number {
    // Where in `data` the section would begin.
    const origin = position - this.#length;
    // Four bytes more may be the last line's end and the empty line.
    const end = Math.min(data.length, origin + this.#maxBytes + 4);
    for (let at = data.indexOf(lineFeed, position); at >= 0 && at < end; at = data.indexOf(lineFeed, at + 1)) {
      const before = at > position ? data[at - 1] : this.#bytes[this.#length - 1];
      if (before !== carriageReturn) return this.#break("bare_lf", data, position);
      if (at - 1 - origin === this.#lineStart) {
        this.#append(data, position, at + 1);
        return at + 1;
      }
      this.#lineStart = at + 1 - origin;
      this.#lineCount += 1;
      if (this.#lineCount > this.#maxLines) return this.#break("too_many_lines", data, position);
    }
    if (end < data.length || end - origin === this.#maxBytes + 4) return this.#break("too_large", data, position);
    this.#append(data, position, end);
    return -1;
  }

  /** The complete lines are the text all the same. */
  #break(fault: SectionFault, data: Buffer, position: number): -1 {
    const end = position - this.#length + this.#lineStart;
    if (end > position) this.#append(data, position, end);
    this.fault = fault;
    return -1;
  }

  #append(data: Buffer, position: number, end: number): void {
    const needed = this.#length + end - position;
    if (needed > this.#bytes.length) {
      const grown = Buffer.allocUnsafe(Math.min(Math.max(leastBytes, needed * 2), this.#maxBytes + 4));
      this.#bytes.copy(grown, 0, 0, this.#length);
      this.#bytes = grown;
    }
    data.copy(this.#bytes, this.#length, position, end);
    this.#length = needed;
  }
}
