// Field sections to their HPACK encoding (RFC 7541), as latin1 text: heads leave with small bodies as one text. One
// instance a connection; its dynamic table is what it has told the peer.
import { latin1Only } from "../../../http/header-value.ts";
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

/** A name's place in the static table, and the values that have an index. */
interface KnownName {
  readonly staticIndex: number;
  readonly isOfConnection: boolean;
  /** By value: the static index as it is, of the dynamic ones the number of the insertion, negative. */
  readonly values: Map<string, number>;
  /** Falls with each insertion, rises with each hit. */
  credit: number;
  /** The newest insertion of this name; 0 = none. */
  newest: number;
}

const staticByName = new Map<
  string,
  { readonly index: number; readonly values: readonly (readonly [string, number])[] }
>();
for (let index = staticCount; index > 0; index -= 1) {
  const name = staticNames[index]!;
  const others = staticByName.get(name)?.values ?? [];
  const value = staticValues[index]!;
  staticByName.set(name, { index, values: value === "" ? others : [...others, [value, index]] });
}

/** Names that a connection remembers; more are written out each time. */
const maxKnownNames = 256;

const characters = Array.from({ length: 256 }, (_, code) => String.fromCharCode(code));

export class HpackEncoder {
  readonly #known = new Map<string, KnownName>();
  /** Insertions in order, the oldest at `#oldest`. */
  readonly #names: (KnownName | undefined)[] = [];
  readonly #texts: string[] = [];
  readonly #sizes: number[] = [];
  #insertions = 0;
  #evictions = 0;
  #tableBytes = 0;
  #limitBytes = maxTableBytes;
  /** To be told at the beginning of the next block: the least limit since the last one, then the present one. */
  #toldLimits: number[] = [];

  /** What the peer's SETTINGS_HEADER_TABLE_SIZE allows, in bytes. */
  setPeerLimit(peerBytes: number): void {
    const limit = Math.min(peerBytes, maxTableBytes);
    if (limit === this.#limitBytes) return;
    this.#limitBytes = limit;
    this.#evict(limit);
    const least = Math.min(limit, ...this.#toldLimits);
    this.#toldLimits = least < limit ? [least, limit] : [limit];
  }

  /** What stands before the first field of a block. */
  begin(): string {
    if (this.#toldLimits.length === 0) return "";
    const text = this.#toldLimits.map((limit) => integer(0x20, 5, limit)).join("");
    this.#toldLimits = [];
    return text;
  }

  /** `[name, value, …]` */
  fields(entries: readonly string[]): string {
    let block = "";
    for (let index = 0; index < entries.length; index += 2) block += this.field(entries[index]!, entries[index + 1]!);
    return block;
  }

  /** `name` in lower case. Fields of a connection, such as a rule may add, are left out (RFC 9113 §8.2.2). */
  field(name: string, text: string): string {
    const known = this.#known.get(name) ?? this.#learn(name);
    if (known === undefined) return connectionFields.has(name) ? "" : `\0${plain(name)}${plain(latin1Only(text))}`;
    if (known.isOfConnection) return "";
    const found = known.values.get(text);
    if (found !== undefined) {
      if (known.credit < maxCredit) known.credit += 1;
      return integer(0x80, 7, found > 0 ? found : this.#dynamicIndex(-found));
    }
    const value = latin1Only(text);
    const nameIndex =
      known.staticIndex > 0 ? known.staticIndex : known.newest > this.#evictions ? this.#dynamicIndex(known.newest) : 0;
    if (neverIndexed.has(name))
      return `${integer(0x10, 4, nameIndex)}${nameIndex === 0 ? plain(name) : ""}${plain(value)}`;
    const size = name.length + value.length + fieldOverheadBytes;
    if (known.credit <= 0 || size > maxEntryBytes || size > this.#limitBytes) {
      return `${integer(0, 4, nameIndex)}${nameIndex === 0 ? plain(name) : ""}${plain(value)}`;
    }
    known.credit -= 1;
    const block = `${integer(0x40, 6, nameIndex)}${nameIndex === 0 ? shortest(name) : ""}${shortest(value)}`;
    this.#insert(known, value, size);
    return block;
  }

  #learn(name: string): KnownName | undefined {
    if (this.#known.size >= maxKnownNames) return undefined;
    const row = staticByName.get(name);
    const known: KnownName = {
      staticIndex: row?.index ?? 0,
      isOfConnection: connectionFields.has(name),
      values: new Map(row?.values),
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
    known.values.set(value, -this.#insertions);
    known.newest = this.#insertions;
  }

  #evict(limitBytes: number): void {
    while (this.#tableBytes > limitBytes) {
      const known = this.#names.shift()!;
      const value = this.#texts.shift()!;
      this.#tableBytes -= this.#sizes.shift()!;
      this.#evictions += 1;
      if (known.values.get(value) === -this.#evictions) known.values.delete(value);
    }
  }
}

/** §5.1, with the bits above the prefix in `pattern`. */
function integer(pattern: number, prefixBits: number, value: number): string {
  const most = (1 << prefixBits) - 1;
  if (value < most) return characters[pattern | value]!;
  let text = characters[pattern | most]!;
  let rest = value - most;
  for (; rest > 127; rest >>>= 7) text += characters[(rest & 127) | 128]!;
  return text + characters[rest]!;
}

function plain(text: string): string {
  return integer(0, 7, text.length) + text;
}

/** For what stays in the peer's table: written once, so that its code may cost something. */
function shortest(text: string): string {
  const bytes = huffmanBytes(text);
  return bytes < text.length ? integer(0x80, 7, bytes) + huffmanEncode(text) : plain(text);
}
