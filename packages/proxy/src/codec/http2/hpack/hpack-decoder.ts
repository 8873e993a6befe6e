// Field sections from their HPACK encoding (RFC 7541). One instance a connection: its dynamic table is what the peer's
// encoder says, so that every block of the connection is decoded in order, those of refused requests included.
import { latin1Slice } from "../../../http/latin1-slice.ts";
import { type FieldKind, fieldKinds, kindOfName, kindWithValue } from "../field-syntax.ts";
import { huffmanDecode } from "./huffman.ts";
import { rememberValue, repeatedValue } from "./repeated-values.ts";
import { staticCount, staticNames, staticValues } from "./static-table.ts";

/** What a field takes of the table and of a list, beside its text (RFC 7541 §4.1, RFC 9113 §6.5.2). */
export const fieldOverheadBytes = 32;

export interface FieldSink {
  /** `kind` is looked at once for each literal. */
  onField(name: string, value: string, kind: FieldKind): void;
}

const staticNameKinds = staticNames.map(kindOfName);
const staticKinds = staticNameKinds.map((kind, index) => kindWithValue(kind, staticValues[index]!));
/** RFC 9113 §6.5.2. */
const defaultTableBytes = 4096;

/** Entries that a table has room for when the first one comes: most connections bring a few. */
const firstCapacity = 8;

/** Longer ones stand for numbers beyond 2^28, which nothing here may be (§5.1). */
const maxContinuationBytes = 4;

export class HpackDecoder {
  /** What we have told the peer (SETTINGS_HEADER_TABLE_SIZE), or what holds until it has taken that. */
  #maxTableBytes: number;
  /** What the peer has made of it. */
  #tableLimitBytes = defaultTableBytes;
  /** The peer uses more than it may: it has to say less before anything else. */
  #owesResize = false;
  #tableBytes = 0;
  // A ring, the newest at `#newest`; its capacity is a power of two, or nothing yet.
  #names: string[] = [];
  #values: string[] = [];
  #kinds: FieldKind[] = [];
  #newest = 0;
  #count = 0;
  #bytes: Buffer = Buffer.alloc(0);
  #position = 0;
  #end = 0;
  /** Of the literal that was read last. */
  #name = "";
  #value = "";
  #kind: FieldKind = fieldKinds.unsound;

  /** `maxTableBytes`: what our SETTINGS say; the peer may use the default until it has seen them (§4.2). */
  constructor(maxTableBytes: number) {
    this.#maxTableBytes = Math.max(maxTableBytes, defaultTableBytes);
  }

  /** The peer has acknowledged SETTINGS that say so. */
  setLimit(maxTableBytes: number): void {
    this.#maxTableBytes = maxTableBytes;
    this.#owesResize = this.#tableLimitBytes > maxTableBytes;
  }

  /**
   * A whole field section, its CONTINUATIONs joined. False where it cannot be decoded: the connection's tables differ
   * from then on (RFC 9113 §4.3: COMPRESSION_ERROR).
   */
  decode(bytes: Buffer, start: number, end: number, sink: FieldSink): boolean {
    this.#bytes = bytes;
    this.#position = start;
    this.#end = end;
    let mayResize = true;
    while (this.#position < end) {
      const first = bytes[this.#position]!;
      if (this.#owesResize && (first & 0xe0) !== 0x20) return false;
      if ((first & 0x80) !== 0) {
        if (!this.#indexed(sink)) return false;
      } else if ((first & 0x40) !== 0) {
        if (!this.#literal(6)) return false;
        this.#insert(this.#name, this.#value, this.#kind);
        sink.onField(this.#name, this.#value, this.#kind);
      } else if ((first & 0x20) !== 0) {
        // A change of the table's size stands at the beginning of a block alone (§4.2).
        const limit = this.#integer(5);
        if (!mayResize || limit < 0 || limit > this.#maxTableBytes) return false;
        this.#tableLimitBytes = limit;
        this.#owesResize = false;
        this.#evict(limit);
        continue;
      } else {
        if (!this.#literal(4)) return false;
        sink.onField(this.#name, this.#value, this.#kind);
      }
      mayResize = false;
    }
    return true;
  }

  #indexed(sink: FieldSink): boolean {
    const index = this.#integer(7);
    if (index <= 0) return false;
    if (index <= staticCount) {
      sink.onField(staticNames[index]!, staticValues[index]!, staticKinds[index]!);
      return true;
    }
    const slot = this.#slot(index);
    if (slot < 0) return false;
    sink.onField(this.#names[slot]!, this.#values[slot]!, this.#kinds[slot]!);
    return true;
  }

  /** Leaves what it read in `#name`, `#value` and `#kind`. */
  #literal(prefixBits: number): boolean {
    const index = this.#integer(prefixBits);
    if (index < 0) return false;
    let kind: FieldKind;
    if (index === 0) {
      const name = this.#string();
      if (name === undefined) return false;
      this.#name = name;
      kind = kindOfName(name);
    } else if (index <= staticCount) {
      this.#name = staticNames[index]!;
      kind = staticNameKinds[index]!;
    } else {
      const slot = this.#slot(index);
      if (slot < 0) return false;
      this.#name = this.#names[slot]!;
      kind = this.#kinds[slot]!;
      if (kind === fieldKinds.unsound) kind = kindOfName(this.#name);
    }
    if (index > 0 && index <= staticCount) return this.#valueOfStatic(index, kind);
    const value = this.#string();
    if (value === undefined) return false;
    this.#value = value;
    this.#kind = kindWithValue(kind, value);
    return true;
  }

  #valueOfStatic(index: number, nameKind: FieldKind): boolean {
    const bytes = this.#bytes;
    const from = this.#position;
    // With its length in one byte; others are read as any.
    const start = from + 1;
    const end = start + (bytes[from]! & 0x7f);
    const isHuffman = from < this.#end && (bytes[from]! & 0x80) !== 0;
    const known = isHuffman && end <= this.#end ? repeatedValue(index, bytes, start, end) : undefined;
    if (known !== undefined) {
      this.#position = end;
      this.#value = known.value;
      this.#kind = known.kind;
      return true;
    }
    const value = this.#string();
    if (value === undefined) return false;
    this.#value = value;
    this.#kind = kindWithValue(nameKind, value);
    if (isHuffman && this.#position === end) rememberValue(index, bytes, start, end, value, this.#kind);
    return true;
  }

  /** Where the entry of a dynamic index stands; -1 where there is none. */
  #slot(index: number): number {
    const age = index - staticCount - 1;
    return age < this.#count ? (this.#newest - age) & (this.#names.length - 1) : -1;
  }

  /** -1 where it is cut short or too large (§5.1). */
  #integer(prefixBits: number): number {
    const bytes = this.#bytes;
    const mask = (1 << prefixBits) - 1;
    let value = bytes[this.#position++]! & mask;
    if (value < mask) return value;
    for (let shift = 0; shift < 7 * maxContinuationBytes; shift += 7) {
      if (this.#position >= this.#end) return -1;
      const byte = bytes[this.#position++]!;
      value += (byte & 0x7f) << shift;
      if ((byte & 0x80) === 0) return value;
    }
    return -1;
  }

  #string(): string | undefined {
    if (this.#position >= this.#end) return undefined;
    const isHuffman = (this.#bytes[this.#position]! & 0x80) !== 0;
    const length = this.#integer(7);
    const start = this.#position;
    if (length < 0 || length > this.#end - start) return undefined;
    this.#position = start + length;
    if (isHuffman) return huffmanDecode(this.#bytes, start, start + length);
    return latin1Slice(this.#bytes, start, start + length);
  }

  #insert(name: string, value: string, kind: FieldKind): void {
    const size = name.length + value.length + fieldOverheadBytes;
    this.#evict(this.#tableLimitBytes - size);
    // One that is larger than the table empties it, which is no error (§4.4).
    if (size > this.#tableLimitBytes) return;
    if (this.#count === this.#names.length) this.#grow();
    this.#newest = (this.#newest + 1) & (this.#names.length - 1);
    this.#names[this.#newest] = name;
    this.#values[this.#newest] = value;
    this.#kinds[this.#newest] = kind;
    this.#count += 1;
    this.#tableBytes += size;
  }

  #evict(limitBytes: number): void {
    while (this.#count > 0 && this.#tableBytes > limitBytes) {
      const oldest = (this.#newest - this.#count + 1) & (this.#names.length - 1);
      this.#tableBytes -= this.#names[oldest]!.length + this.#values[oldest]!.length + fieldOverheadBytes;
      this.#names[oldest] = "";
      this.#values[oldest] = "";
      this.#count -= 1;
    }
  }

  #grow(): void {
    const { length } = this.#names;
    const oldestFirst = <Value>(ring: Value[], empty: Value): Value[] =>
      Array.from({ length: Math.max(firstCapacity, 2 * length) }, (_, index) =>
        index < length ? ring[(this.#newest + 1 + index) & (length - 1)]! : empty,
      );
    this.#names = oldestFirst(this.#names, "");
    this.#values = oldestFirst(this.#values, "");
    this.#kinds = oldestFirst(this.#kinds, fieldKinds.unsound);
    this.#newest = length - 1;
  }

  /** Bytes that the dynamic table holds by HPACK's count; for tests. */
  get tableBytes(): number {
    return this.#tableBytes;
  }
}
