// Field sections to their HPACK encoding (RFC 7541), written where they leave from. One instance a connection; its
// dynamic table is what it has told the peer.
import { latin1Only } from "../../../http/header-value.ts";
import { latin1Write } from "../../../http/latin1-write.ts";
import { connectionFields } from "../connection-fields.ts";
import { fieldOverheadBytes } from "./hpack-decoder.ts";
import { huffmanBytes, huffmanEncode } from "./huffman.ts";
import { staticCount, staticNames, staticValues } from "./static-table.ts";

/** We use no more of what the peer offers: fields that come again fit in. */
const maxTableBytes = 4096;
/** A field that would take more of the table than this would push the others out. */
const maxEntryBytes = maxTableBytes / 4;

/**
 * Secrets that an attacker could guess by how well they compress; written so that no hop behind compresses them either
 * (§7.1).
 */
const neverIndexed: ReadonlySet<string> = new Set(["authorization", "proxy-authorization", "cookie", "set-cookie"]);

/**
 * How often a name may be inserted beyond its hits. A value that never comes again (a request's id) would push out
 * those that do; one that changes now and then (the date) is worth its place.
 */
const maxVainInsertions = 2;
const maxCredit = 8;

/**
 * Values of a name that have come in vain before only some are looked for: the hash of one that never comes again costs
 * as much as writing it.
 */
const maxMisses = 64;
/** A power of two less one. */
const missesBetweenLooks = 15;

/** A name's place in the static table, and the values that have an index. */
interface KnownName {
  readonly staticIndex: number;
  readonly isOfConnection: boolean;
  readonly isNeverIndexed: boolean;
  /** The name's values in the static table, by value; undefined where there are none. */
  readonly staticValues: ReadonlyMap<string, number> | undefined;
  /** The value that was found last, and where (`#find`): it nearly always comes again. */
  lastValue: string;
  lastFound: number;
  /** Values without an index since then. */
  misses: number;
  /** Falls with each insertion, rises with each hit. */
  credit: number;
  /** The newest insertion of this name; 0 = none. */
  newest: number;
}

const staticByName = new Map<string, { readonly index: number; readonly values: Map<string, number> | undefined }>();
for (let index = staticCount; index > 0; index -= 1) {
  const name = staticNames[index]!;
  const value = staticValues[index]!;
  const others = staticByName.get(name)?.values;
  staticByName.set(name, { index, values: value === "" ? others : new Map(others).set(value, index) });
}

/** Names that a connection remembers; more are written out each time. */
const maxKnownNames = 256;

/** Of a field, beside its text: an index or a name's length, and a value's length (§5.1: 5 bytes for 28 bits). */
const overheadBytes = 11;
/** Two changes of the table's size, and eight fields beside the entries. */
const sectionOverheadBytes = 2 * 5 + 8 * overheadBytes;

/** Shorter text is written by a loop, longer by Node, which costs the same for any length but is a call out of V8. */
const loopedCharacters = 16;
/** As `latin1Only` has it. */
const questionMark = 63;

/** The most that `[name, value, …]` and up to eight other fields with `moreBytes` of text take. */
export function maxEncodedBytes(entries: readonly string[], moreBytes: number): number {
  let bytes = sectionOverheadBytes + moreBytes + (entries.length >> 1) * overheadBytes;
  for (let index = 0; index < entries.length; index += 1) bytes += entries[index]!.length;
  return bytes;
}

export class HpackEncoder {
  readonly #known = new Map<string, KnownName>();
  /** Insertions in order, the oldest first. */
  readonly #names: KnownName[] = [];
  readonly #texts: string[] = [];
  readonly #sizes: number[] = [];
  #insertions = 0;
  #evictions = 0;
  #tableBytes = 0;
  #limitBytes = maxTableBytes;
  /** To be told at the beginning of the next block: the least limit since the last one, then the present one. */
  #toldLimits: number[] = [];
  /** Where the block is written, and behind what has been. */
  bytes: Buffer = Buffer.alloc(0);
  at = 0;
  /** Of the block's names and values. */
  textBytes = 0;

  /** What the peer's SETTINGS_HEADER_TABLE_SIZE allows, in bytes. */
  setPeerLimit(peerBytes: number): void {
    const limit = Math.min(peerBytes, maxTableBytes);
    if (limit === this.#limitBytes) return;
    this.#limitBytes = limit;
    this.#evict(limit);
    const least = Math.min(limit, ...this.#toldLimits);
    this.#toldLimits = least < limit ? [least, limit] : [limit];
  }

  /** A block begins at `at`, where `maxEncodedBytes` are free. */
  begin(bytes: Buffer, at: number): void {
    this.bytes = bytes;
    this.at = at;
    this.textBytes = 0;
    if (this.#toldLimits.length === 0) return;
    for (const limit of this.#toldLimits) this.#integer(0x20, 5, limit);
    this.#toldLimits = [];
  }

  /** `[name, value, …]` */
  fields(entries: readonly string[]): void {
    for (let index = 0; index < entries.length; index += 2) this.field(entries[index]!, entries[index + 1]!);
  }

  /** `name` in lower case. Fields of a connection, such as a rule may add, are left out (RFC 9113 §8.2.2). */
  field(name: string, text: string): void {
    const known = this.#known.get(name) ?? this.#learn(name);
    if (known === undefined) {
      if (connectionFields.has(name)) return;
      this.textBytes += name.length + text.length;
      this.#integer(0, 4, 0);
      this.#plain(name);
      this.#plain(text);
      return;
    }
    if (known.isOfConnection) return;
    this.textBytes += name.length + text.length;
    const found = this.#find(known, text);
    if (found !== 0) {
      if (known.credit < maxCredit) known.credit += 1;
      this.#integer(0x80, 7, found > 0 ? found : this.#dynamicIndex(-found));
    } else {
      this.#literal(known, name, text);
    }
  }

  /** A static index as it is, of the dynamic ones the number of the insertion, negative; 0 = the value has no index. */
  #find(known: KnownName, text: string): number {
    const last = known.lastFound;
    if (last !== 0 && known.lastValue === text && (last > 0 || -last > this.#evictions)) return last;
    if (known.misses > maxMisses && (known.misses & missesBetweenLooks) !== 0) {
      known.misses += 1;
      return 0;
    }
    const found = known.staticValues?.get(text) ?? this.#findInserted(known, text);
    if (found === 0) {
      known.misses += 1;
      return 0;
    }
    known.misses = 0;
    known.lastValue = text;
    known.lastFound = found;
    return found;
  }

  /** The table holds some dozens: to look through it is what a Map for each name would cost in memory. */
  #findInserted(known: KnownName, text: string): number {
    for (let index = this.#names.length - 1; index >= 0; index -= 1) {
      if (this.#names[index] === known && this.#texts[index] === text) return -(this.#evictions + index + 1);
    }
    return 0;
  }

  #literal(known: KnownName, name: string, text: string): void {
    const nameIndex =
      known.staticIndex > 0 ? known.staticIndex : known.newest > this.#evictions ? this.#dynamicIndex(known.newest) : 0;
    const size = name.length + text.length + fieldOverheadBytes;
    if (known.isNeverIndexed || known.credit <= 0 || size > maxEntryBytes || size > this.#limitBytes) {
      this.#integer(known.isNeverIndexed ? 0x10 : 0, 4, nameIndex);
      if (nameIndex === 0) this.#plain(name);
      this.#plain(text);
      return;
    }
    const value = latin1Only(text);
    known.credit -= 1;
    this.#integer(0x40, 6, nameIndex);
    if (nameIndex === 0) this.#shortest(name);
    this.#shortest(value);
    this.#insert(known, value, size);
  }

  #learn(name: string): KnownName | undefined {
    if (this.#known.size >= maxKnownNames) return undefined;
    const row = staticByName.get(name);
    const known: KnownName = {
      staticIndex: row?.index ?? 0,
      isOfConnection: connectionFields.has(name),
      isNeverIndexed: neverIndexed.has(name),
      staticValues: row?.values,
      lastValue: "",
      lastFound: 0,
      misses: 0,
      credit: maxVainInsertions,
      newest: 0,
    };
    this.#known.set(name, known);
    return known;
  }

  #dynamicIndex(insertion: number): number {
    return staticCount + 1 + this.#insertions - insertion;
  }

  #insert(known: KnownName, value: string, size: number): void {
    this.#evict(this.#limitBytes - size);
    this.#insertions += 1;
    this.#tableBytes += size;
    this.#names.push(known);
    this.#texts.push(value);
    this.#sizes.push(size);
    known.newest = this.#insertions;
  }

  #evict(limitBytes: number): void {
    while (this.#tableBytes > limitBytes) {
      this.#names.shift();
      this.#texts.shift();
      this.#tableBytes -= this.#sizes.shift()!;
      this.#evictions += 1;
    }
  }

  /** §5.1, with the bits above the prefix in `pattern`. */
  #integer(pattern: number, prefixBits: number, value: number): void {
    const { bytes } = this;
    const most = (1 << prefixBits) - 1;
    if (value < most) {
      bytes[this.at++] = pattern | value;
      return;
    }
    bytes[this.at++] = pattern | most;
    let rest = value - most;
    for (; rest > 127; rest >>>= 7) bytes[this.at++] = (rest & 127) | 128;
    bytes[this.at++] = rest;
  }

  /** A character that one byte cannot hold would become another one, which may be a line feed. */
  #plain(text: string): void {
    const { length } = text;
    this.#integer(0, 7, length);
    const { bytes, at } = this;
    this.at = at + length;
    if (length > loopedCharacters) {
      latin1Write(bytes, latin1Only(text), at);
      return;
    }
    for (let index = 0; index < length; index += 1) {
      const code = text.charCodeAt(index);
      bytes[at + index] = code > 0xff ? questionMark : code;
    }
  }

  /** For what stays in the peer's table: written once, so that its code may cost something. */
  #shortest(text: string): void {
    const length = huffmanBytes(text);
    if (length >= text.length) {
      this.#plain(text);
      return;
    }
    this.#integer(0x80, 7, length);
    this.at = huffmanEncode(text, this.bytes, this.at);
  }
}
