// What HPACK's decoder refuses, and that what the encoder makes is read as what it was, by our decoder and by others'.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { plainFields } from "../../../testing/http2-peer.ts";
import { type FieldKind, fieldKinds } from "../field-syntax.ts";
import { HpackDecoder } from "./hpack-decoder.ts";
import { HpackEncoder, maxEncodedBytes } from "./hpack-encoder.ts";
import { huffmanBytes, huffmanDecode, huffmanEncode } from "./huffman.ts";
import { staticCount, staticNames } from "./static-table.ts";

type Field = readonly [name: string, value: string];

function decodeAll(decoder: HpackDecoder, block: Buffer): readonly Field[] | undefined {
  const fields: Field[] = [];
  const sink = { onField: (name: string, value: string) => void fields.push([name, value]) };
  return decoder.decode(block, 0, block.length, sink) ? fields : undefined;
}

function encodeAll(encoder: HpackEncoder, fields: readonly Field[]): Buffer {
  const block = Buffer.alloc(maxEncodedBytes(fields.flat(), 0));
  encoder.begin(block, 0);
  for (const [name, value] of fields) encoder.field(name, value);
  return block.subarray(0, encoder.at);
}

for (const { name, hex, limitBytes } of [
  { name: "C.1.1: 10 in a prefix of 5 bits", hex: "2a", limitBytes: 10 },
  { name: "C.1.2: 1337 in a prefix of 5 bits", hex: "3f9a0a", limitBytes: 1337 },
]) {
  test(`an integer of RFC 7541 ${name}`, () => {
    const size = Buffer.from(hex, "hex");
    // An entry is 32 bytes larger than its name and value (§4.1); the last one is the first of the table.
    for (const [bytes, isKept] of [
      [limitBytes, limitBytes >= 33],
      [limitBytes + 33, false],
    ] as const) {
      const value = Buffer.alloc(Math.max(0, bytes - 33), 97);
      const field = plainFields([["x", value.toString()]]);
      field[0] = 0x40;
      const block = Buffer.concat([size, field, Buffer.from([0xbe])]);
      assert.equal(decodeAll(new HpackDecoder(4096), block)?.length, isKept ? 2 : undefined);
    }
    const encoder = new HpackEncoder();
    encoder.setPeerLimit(limitBytes);
    assert.equal(encodeAll(encoder, []).toString("hex"), hex);
  });
}

for (const { name, hex } of [
  { name: "index 0 (§6.1)", hex: "80" },
  { name: "an index beyond the tables (§2.3.3)", hex: "be" },
  { name: "a name's index beyond the tables", hex: "7e0161" },
  { name: "an integer that is cut short (§5.1)", hex: "ff" },
  { name: "an integer that goes on and on", hex: "ffffffffffffffff7f" },
  { name: "an integer of 2^28 and more", hex: "7fffffffff0f00" },
  { name: "a string that is cut short (§5.2)", hex: "400161056162" },
  { name: "a literal without its value", hex: "400161" },
  { name: "a literal without its name", hex: "40" },
  { name: "a string whose length is cut short", hex: "40017f" },
  { name: "EOS in a Huffman string (§5.2)", hex: "00016184ffffffff" },
  { name: "padding of 8 bits (§5.2)", hex: "00016182f8ff" },
  { name: "padding that is not of ones (§5.2)", hex: "000161811c" },
  { name: "a larger table than was offered (§6.3)", hex: "3fe21f" },
  { name: "a change of size behind a field (§4.2)", hex: "8220" },
]) {
  test(`not decoded: ${name}`, () => {
    assert.equal(decodeAll(new HpackDecoder(4096), Buffer.from(hex, "hex")), undefined);
  });
}

for (const { name, hex, sound } of [
  { name: "a good name and value", hex: "00016101 62", sound: true },
  { name: "an empty value", hex: "00016100", sound: true },
  { name: "an upper-case name", hex: "00014101 62", sound: false },
  { name: "a space in a name", hex: "0003612062 0162", sound: false },
  { name: "a NUL in a name", hex: "00026100 0162", sound: false },
  { name: "an empty name", hex: "00000162", sound: false },
  { name: "a colon within a name", hex: "0003613a62 0162", sound: false },
  { name: "a line feed in a value", hex: "000161 03610a62", sound: false },
  { name: "a NUL in a value", hex: "000161 03610062", sound: false },
  { name: "a space before a value", hex: "000161 022062", sound: false },
  { name: "a tab behind a value", hex: "000161 026209", sound: false },
  { name: "bytes beyond ASCII in a value", hex: "000161 02c3a9", sound: true },
]) {
  test(`soundness: ${name}`, () => {
    const block = Buffer.from(hex.replaceAll(" ", ""), "hex");
    // Once as it is and once out of the table.
    const indexing = Buffer.concat([Buffer.from([0x40]), block.subarray(1), Buffer.from([0xbe])]);
    const seen: boolean[] = [];
    const sink = {
      onField: (_name: string, _value: string, kind: FieldKind) => void seen.push(kind !== fieldKinds.unsound),
    };
    assert.ok(new HpackDecoder(4096).decode(block, 0, block.length, sink));
    assert.ok(new HpackDecoder(4096).decode(indexing, 0, indexing.length, sink));
    assert.deepEqual(seen, [sound, sound, sound]);
  });
}

const latin1 = fc.string({ unit: fc.integer({ min: 0, max: 255 }).map((code) => String.fromCharCode(code)) });

test("any text comes back out of Huffman's code", () => {
  fc.assert(
    fc.property(latin1, (text) => {
      const code = Buffer.alloc(huffmanBytes(text));
      assert.equal(huffmanEncode(text, code, 0), code.length);
      assert.equal(huffmanDecode(code, 0, code.length), text);
    }),
  );
});

test("any bytes are decoded or not, and never more than they can stand for", () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
      const decoder = new HpackDecoder(256);
      decoder.setLimit(256);
      // First a change to 256 bytes, which is owed.
      decodeAll(decoder, Buffer.from([0x3f, 0xe1, 0x01, ...bytes]));
      assert.ok(decoder.tableBytes <= 256);
    }),
    { numRuns: 2000 },
  );
});

const field = fc.tuple(
  fc.oneof(fc.constantFrom(":path", ":status", "cookie", "date", "x-request-id"), fc.string({ minLength: 1 })),
  fc.oneof(fc.constantFrom("/", "200", "a", "b".repeat(1100)), latin1),
);

test("what is encoded is decoded, over many sections and changes of the table's size", () => {
  const step = fc.oneof(fc.array(field, { maxLength: 12 }), fc.constantFrom(0, 100, 4096, 65_536));
  fc.assert(
    fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
      const encoder = new HpackEncoder();
      const decoder = new HpackDecoder(4096);
      for (const each of steps) {
        if (typeof each === "number") encoder.setPeerLimit(each);
        else assert.deepEqual(decodeAll(decoder, encodeAll(encoder, each)), each);
      }
    }),
    { numRuns: 500 },
  );
});

test("a field that comes again is one byte, one that never does leaves the table alone, a secret is never indexed", () => {
  const encoder = new HpackEncoder();
  const decoder = new HpackDecoder(4096);
  const lengths: number[] = [];
  for (let request = 0; request < 6; request += 1) {
    for (const each of [
      ["user-agent", "a client"],
      ["x-request-id", `id-${request}`],
      ["authorization", "Bearer secret"],
    ] as const) {
      const block = encodeAll(encoder, [each]);
      assert.deepEqual(decodeAll(decoder, block), [each]);
      if (each[0] === "user-agent") lengths.push(block.length);
      if (each[0] === "authorization") assert.equal(block[0]! & 0xf0, 0x10, "never indexed");
    }
  }
  assert.deepEqual(lengths.slice(1), [1, 1, 1, 1, 1]);
  assert.ok(decoder.tableBytes < 200, `${decoder.tableBytes} bytes`);
});

test("a character that one byte cannot hold does not become another one", () => {
  const encoder = new HpackEncoder();
  const decoder = new HpackDecoder(4096);
  const names = ["x-new", "authorization", "x-new", ...Array.from({ length: 300 }, (_, index) => `x-${index}`)];
  for (const name of names) {
    // Their low bytes are a line feed, a carriage return and the end of a C string.
    const block = encodeAll(encoder, [[name, "a\u010a\u010d\u0100b"]]);
    assert.deepEqual(decodeAll(decoder, block), [[name, "a???b"]]);
  }
});

test("fields of a connection are left out", () => {
  const encoder = new HpackEncoder();
  for (const name of ["connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade"])
    for (let again = 0; again < 2; again += 1) assert.equal(encodeAll(encoder, [[name, "a"]]).length, 0, name);
});

test("a value that is written out again and again is what its bytes say, whatever came before it", () => {
  const value = fc.oneof(fc.constantFrom("", "a", "text/plain", "b".repeat(100)), latin1);
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.integer({ min: 1, max: staticCount }), value), { maxLength: 30 }), (literals) => {
      const decoder = new HpackDecoder(4096);
      for (const [index, text] of literals) {
        const length = huffmanBytes(text);
        const block = Buffer.alloc(16 + length);
        let at = writeInteger(block, 0, 0, 15, index);
        at = writeInteger(block, at, 0x80, 127, length);
        at = huffmanEncode(text, block, at);
        assert.deepEqual(decodeAll(decoder, block.subarray(0, at)), [[staticNames[index], text]]);
        // Cut short, it is none, whatever is known of it.
        if (length > 0) assert.equal(decodeAll(new HpackDecoder(4096), block.subarray(0, at - 1)), undefined);
      }
    }),
    { numRuns: 500 },
  );
});

/** §5.1; gives the position behind it. */
function writeInteger(block: Buffer, start: number, pattern: number, most: number, value: number): number {
  let at = start;
  block[at++] = pattern | Math.min(most, value);
  if (value < most) return at;
  let rest = value - most;
  for (; rest > 127; rest >>>= 7) block[at++] = (rest & 127) | 128;
  block[at++] = rest;
  return at;
}
