// Attributes of a span that are gathered as text and made bytes together: a native call for each, or a loop over its
// characters, costs more than joining them (attributes of one span: 1.1 µs by a loop, 0.6 like this).
import { type ProtobufWriter, writeAttribute } from "@tulle/telemetry";
import { spanText } from "./span-text.ts";

/** Lengths of messages below it take one byte, which is ASCII. */
const shortBytes = 0x80;
/** Of a message `{ 1: key, 2: { 1: value } }`, beside key and value. */
const frameBytes = 6;
/** Names of attributes are the code's and the configuration's. */
const maxKeys = 1024;

/** What stands before values of one key, by their length. */
interface Heads {
  readonly key: string;
  readonly byLength: (string | undefined)[];
}

export class ShortAttributes {
  readonly #writer: ProtobufWriter;
  /** The field's tag, a byte: the field is below 16. */
  readonly #tag: string;
  readonly #field: number;
  readonly #heads = new Map<string, Heads>();
  /** Spans have mostly the same keys in the same order: each is looked for where it was in the span before. */
  readonly #inOrder: Heads[] = [];
  #position = 0;
  #text = "";

  constructor(writer: ProtobufWriter, field: number) {
    this.#writer = writer;
    this.#field = field;
    this.#tag = String.fromCharCode(field * 8 + 2);
  }

  /** Another span begins. */
  clear(): void {
    this.#position = 0;
    this.#text = "";
  }

  /** A character a byte, as the wire has them. Written at once where it is long, otherwise by the next `flush`. */
  add(key: string, value: string): void {
    const expected = this.#inOrder[this.#position];
    const heads = expected?.key === key ? expected : this.#headsOf(key);
    this.#position += 1;
    const head = heads.byLength[value.length] ?? this.#newHead(heads, value.length);
    if (head !== undefined) {
      this.#text += head + value;
      return;
    }
    this.flush();
    writeAttribute(this.#writer, this.#field, key, spanText(value));
  }

  /** What has been added so far, to the writer. */
  flush(): void {
    const text = this.#text;
    if (text === "") return;
    this.#text = "";
    if (!this.#writer.rawAscii(text)) this.#writeEach(text);
  }

  #headsOf(key: string): Heads {
    let heads = this.#heads.get(key);
    if (heads === undefined) {
      // No holes, so that it stays an array for V8.
      heads = { key, byLength: Array.from({ length: shortBytes }, () => undefined) };
      if (this.#heads.size < maxKeys) this.#heads.set(key, heads);
    }
    if (this.#position < maxKeys) this.#inOrder[this.#position] = heads;
    return heads;
  }

  /** Undefined: key and value are too long together. */
  #newHead({ key, byLength }: Heads, valueLength: number): string | undefined {
    const length = key.length + valueLength + frameBytes;
    if (length >= shortBytes) return undefined;
    const ofPair = this.#tag + String.fromCharCode(length, 10, key.length);
    const ofValue = String.fromCharCode(18, valueLength + 2, 10, valueLength);
    const head = ofPair + key + ofValue;
    byLength[valueLength] = head;
    return head;
  }

  /** One of them is not ASCII and takes more bytes than its head says. */
  #writeEach(text: string): void {
    for (let at = 0; at < text.length;) {
      const key = at + 4;
      const value = key + text.charCodeAt(at + 3) + 4;
      const end = value + text.charCodeAt(value - 1);
      writeAttribute(this.#writer, this.#field, text.slice(key, value - 4), spanText(text.slice(value, end)));
      at = end;
    }
  }
}
