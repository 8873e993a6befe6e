// Reads DER (X.690 §10) strictly: requests and certificates come from outside, and what has two readings has two
// identities.

/** Thrown inside a parser for bytes that are not what they should be; the parser's caller gets it as an error value. */
export class DerError extends Error {
  override readonly name = "DerError";
}

export interface DerElement {
  readonly tag: number;
  /** Identifier, length and content: what a signature covers. */
  readonly whole: Buffer;
  readonly content: Buffer;
}

/** Walks over the elements of one level; shares the bytes it is given. */
export class DerReader {
  readonly #bytes: Buffer;
  #offset = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  get done(): boolean {
    return this.#offset === this.#bytes.length;
  }

  /** The next element, whatever it is. */
  any(): DerElement {
    const start = this.#offset;
    const tag = this.#octet();
    if ((tag & 0x1f) === 0x1f) throw new DerError("identifiers of several octets do not occur here");
    const length = this.#length();
    const from = this.#offset;
    if (length > this.#bytes.length - from) throw new DerError("an element is longer than what holds it");
    this.#offset = from + length;
    return {
      tag,
      whole: this.#bytes.subarray(start, this.#offset),
      content: this.#bytes.subarray(from, this.#offset),
    };
  }

  /** The next element, which must have this tag. */
  read(tag: number): DerElement {
    if (this.#bytes[this.#offset] !== tag) {
      const found = this.#bytes[this.#offset];
      throw new DerError(`expected tag ${hex(tag)}, found ${found === undefined ? "the end" : hex(found)}`);
    }
    return this.any();
  }

  /** The next element when it has this tag; undefined, and nothing read, otherwise. */
  optional(tag: number): DerElement | undefined {
    return this.#bytes[this.#offset] === tag ? this.any() : undefined;
  }

  /** A reader over the content of the next element, which must have this tag. */
  enter(tag: number): DerReader {
    return new DerReader(this.read(tag).content);
  }

  end(): void {
    if (!this.done) throw new DerError("bytes follow where nothing may follow");
  }

  #octet(): number {
    const octet = this.#bytes[this.#offset];
    if (octet === undefined) throw new DerError("the bytes end within an element");
    this.#offset += 1;
    return octet;
  }

  #length(): number {
    const first = this.#octet();
    if (first < 0x80) return first;
    const count = first & 0x7f;
    if (count === 0) throw new DerError("indefinite lengths are not DER");
    if (count > 4) throw new DerError("a length is too large");
    let length = 0;
    for (let index = 0; index < count; index += 1) length = length * 256 + this.#octet();
    if (length < 0x80 || length < 256 ** (count - 1)) throw new DerError("a length is not in its shortest form");
    return length;
  }
}

function hex(tag: number): string {
  return `0x${tag.toString(16).padStart(2, "0")}`;
}

/** The octets of an INTEGER, which must be in the shortest form. */
export function integerOctets(found: DerElement): Buffer {
  const [first, second] = found.content;
  if (first === undefined) throw new DerError("an integer has no octets");
  if (second !== undefined && ((first === 0 && second < 0x80) || (first === 0xff && second >= 0x80))) {
    throw new DerError("an integer is not in its shortest form");
  }
  return found.content;
}

/** An INTEGER from 0 to 2³¹−1. */
export function smallIntegerValue(found: DerElement): number {
  const octets = integerOctets(found);
  if (octets[0]! >= 0x80 || octets.length > 4) throw new DerError("an integer is out of range");
  return octets.reduce((value, octet) => value * 256 + octet, 0);
}

export function booleanValue(found: DerElement): boolean {
  if (found.content.length !== 1 || (found.content[0] !== 0 && found.content[0] !== 0xff)) {
    throw new DerError("a boolean is neither 00 nor FF");
  }
  return found.content[0] === 0xff;
}

/** The octets of a BIT STRING of whole octets. */
export function bitStringOctets(found: DerElement): Buffer {
  if (found.content[0] !== 0) throw new DerError("a bit string does not end at an octet");
  return found.content.subarray(1);
}

/** `2.5.29.17` and the like. */
export function objectIdentifierText(found: DerElement): string {
  const octets = found.content;
  if (octets.length === 0 || octets.length > 64 || octets.at(-1)! >= 0x80) throw new DerError("no object identifier");
  const arcs: number[] = [];
  let value = 0;
  let fresh = true;
  for (const octet of octets) {
    if (fresh && octet === 0x80) throw new DerError("an object identifier is not in its shortest form");
    value = value * 128 + (octet & 0x7f);
    if (value > Number.MAX_SAFE_INTEGER) throw new DerError("an object identifier is too large");
    fresh = octet < 0x80;
    if (!fresh) continue;
    arcs.push(value);
    value = 0;
  }
  const first = Math.min(2, Math.floor(arcs[0]! / 40));
  return [first, arcs[0]! - first * 40, ...arcs.slice(1)].join(".");
}

/** Text of printable ASCII octets, as names in certificates are (IA5String without its control characters). */
export function asciiText(octets: Buffer): string {
  if (octets.some((octet) => octet < 0x20 || octet > 0x7e))
    throw new DerError("a name holds a character that is not printable ASCII");
  return octets.toString("latin1");
}

/** UTCTime or GeneralizedTime in the one form that RFC 5280 §4.1.2.5 allows, as milliseconds since 1970. */
export function timeValue(found: DerElement): number {
  const text = found.content.toString("latin1");
  let digits: string;
  if (found.tag === 0x17 && /^\d{12}Z$/.test(text)) digits = `${Number(text.slice(0, 2)) < 50 ? "20" : "19"}${text}`;
  else if (found.tag === 0x18 && /^\d{14}Z$/.test(text)) digits = text;
  else throw new DerError("a time has a form that certificates do not allow");
  const iso = digits.replace(/^(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)Z$/, "$1-$2-$3T$4:$5:$6.000Z");
  const atMs = Date.parse(iso);
  if (Number.isNaN(atMs) || new Date(atMs).toISOString() !== iso) throw new DerError("a time does not exist");
  return atMs;
}
