// Where a message's head ends, for both ends of HTTP/1.1: nearly always it comes whole in one read and is cut out of
// it; one that comes in pieces is gathered under its limits.
import { latin1Slice } from "../../http/latin1-slice.ts";
import { FieldSection, type SectionFault } from "./field-section.ts";

/** `no_head`: what came begins no head, and is not worth waiting for. */
export type HeadFault = SectionFault | "no_head";

/** Up to so much is decoded at once; in more, the end is looked for before. */
const textSliceBytes = 4096;

const upperA = 65;
const upperH = 72;
const upperZ = 90;
const carriageReturn = 13;

/**
 * What can be no request is answered at once, and not when a time-out ends the wait for the rest. A CR may begin an
 * empty line.
 */
export function mayBeginRequest(byte: number): boolean {
  return (byte >= upperA && byte <= upperZ) || byte === carriageReturn;
}

/** The H of HTTP. */
export function mayBeginResponse(byte: number): boolean {
  return byte === upperH;
}

export class HeadReader {
  readonly #maxBytes: number;
  readonly #maxFields: number;
  readonly #mayBegin: (byte: number) => boolean;
  #partial: FieldSection | undefined = undefined;
  /** The head that has been read, from its first line on. Whoever has taken it lets go of it by `forget`. */
  text = "";
  /** Where it ends in `text`, behind its last line. */
  end = 0;
  fault: HeadFault | undefined = undefined;

  /** `mayBegin`: whether a head may begin with such a byte. */
  constructor(maxBytes: number, maxFields: number, mayBegin: (byte: number) => boolean) {
    this.#maxBytes = maxBytes;
    this.#maxFields = maxFields;
    this.#mayBegin = mayBegin;
  }

  /** A head has begun, and its end has not come. */
  get isPartial(): boolean {
    return this.#partial !== undefined;
  }

  /**
   * Gives the position behind the head, or -1: there is a `fault`, or more has to come. `position` is before the end of
   * `data`.
   */
  read(data: Buffer, position: number): number {
    if (this.#partial !== undefined) return this.#readOn(this.#partial, data, position);
    let text = "";
    let end: number;
    if (data.length - position <= textSliceBytes) {
      text = latin1Slice(data, position, data.length);
      end = text.indexOf("\r\n\r\n");
    } else {
      end = data.indexOf("\r\n\r\n", position, "latin1") - position;
      if (end >= 0) text = latin1Slice(data, position, position + end + 2);
    }
    if (end < 0) return this.#begin(data, position);
    if (end > this.#maxBytes) return this.#break("too_large");
    this.text = text;
    this.end = end + 2;
    return position + end + 4;
  }

  /** Of what has come, and of a head that has not come whole. */
  forget(): void {
    this.text = "";
    this.#partial = undefined;
  }

  #begin(data: Buffer, position: number): number {
    if (!this.#mayBegin(data[position]!)) return this.#break("no_head");
    // One line more than fields is the first.
    this.#partial = new FieldSection(this.#maxBytes, this.#maxFields + 1);
    return this.#readOn(this.#partial, data, position);
  }

  #readOn(partial: FieldSection, data: Buffer, position: number): number {
    const next = partial.take(data, position);
    if (next < 0 && partial.fault === undefined) return -1;
    this.#partial = undefined;
    this.text = partial.text;
    this.end = this.text.length;
    return next < 0 ? this.#break(partial.fault!) : next;
  }

  #break(fault: HeadFault): -1 {
    this.fault = fault;
    return -1;
  }
}
