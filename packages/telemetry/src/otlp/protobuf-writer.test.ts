// Bytes of protobuf against the vectors of its encoding guide, and lengths around the edges where they take one byte
// more.
import assert from "node:assert/strict";
import { test } from "node:test";
import { writeAttribute } from "./otlp-message.ts";
import { ProtobufWriter, varintBytes } from "./protobuf-writer.ts";

function written(write: (writer: ProtobufWriter) => void): string {
  const writer = new ProtobufWriter();
  write(writer);
  return writer.written.toString("hex");
}

/** Of 2026-11-24T18:00:00.123456Z, to the nanosecond. */
const nanoseconds = 1_795_543_200_123_456_000n;
const fixed64 = Buffer.alloc(8);
fixed64.writeBigUInt64LE(nanoseconds);

const cases: readonly {
  readonly name: string;
  readonly write: (writer: ProtobufWriter) => void;
  readonly expected: string;
}[] = [
  { name: "a number", write: (w) => w.uint(1, 150), expected: "089601" },
  { name: "zero", write: (w) => w.uint(1, 0), expected: "0800" },
  { name: "beyond 32 bits", write: (w) => w.uint(1, 2 ** 40), expected: "08808080808020" },
  { name: "a field beyond 15", write: (w) => w.uint(16, 1), expected: "800101" },
  { name: "a negative number", write: (w) => w.int(1, -1n), expected: "08ffffffffffffffffff01" },
  { name: "true", write: (w) => w.bool(2, true), expected: "1001" },
  { name: "a double", write: (w) => w.double(1, 1), expected: "09000000000000f03f" },
  { name: "text", write: (w) => w.text(2, "testing"), expected: "120774657374696e67" },
  { name: "text that is not ASCII", write: (w) => w.text(2, "é😀"), expected: "1206c3a9f09f9880" },
  { name: "half a character", write: (w) => w.text(2, "\ud800"), expected: "1203efbfbd" },
  { name: "hexadecimal digits", write: (w) => w.hex(1, "0123456789abcdef"), expected: "0a080123456789abcdef" },
  { name: "what is encoded already", write: (w) => assert.ok(w.rawAscii("\n\u0001a")), expected: "0a0161" },
  { name: "short ASCII", write: (w) => assert.ok(w.asciiText(2, "testing")), expected: "120774657374696e67" },
  { name: "a text that is not ASCII", write: (w) => assert.ok(!w.asciiText(2, "é")), expected: "" },
  { name: "a text beyond one byte of length", write: (w) => assert.ok(!w.asciiText(2, "a".repeat(128))), expected: "" },
  {
    name: "what is taken back",
    write: (w) => {
      w.uint(1, 150);
      const { length } = w;
      w.text(2, "testing");
      w.truncate(length);
    },
    expected: "089601",
  },
  {
    name: "a message with two bytes of length",
    write: (w) => {
      const start = w.beginLong(3);
      w.uint(1, 150);
      w.endLong(start);
    },
    expected: "1a8300089601",
  },
  { name: "what is not ASCII", write: (w) => assert.ok(!w.rawAscii("\n\u0001é")), expected: "" },
  { name: "bytes", write: (w) => w.bytes(1, Uint8Array.of(1, 2)), expected: "0a020102" },
  {
    name: "a time in nanoseconds",
    write: (w) => w.timeMs(1, 1_795_543_200_123.456),
    expected: `09${fixed64.toString("hex")}`,
  },
  { name: "a fixed number", write: (w) => w.fixed64(1, 2 ** 33 + 5), expected: "090500000002000000" },
  {
    name: "a message",
    write: (w) => {
      const start = w.begin(3);
      w.uint(1, 150);
      w.end(start);
    },
    expected: "1a03089601",
  },
];
for (const { name, write, expected } of cases) test(name, () => assert.equal(written(write), expected));

test("long messages are as long as they say", () => {
  for (const length of [127, 128, 16_383, 16_384, 2_097_152]) {
    const writer = new ProtobufWriter();
    const start = writer.beginLong(1);
    writer.raw(Buffer.alloc(length, 7));
    writer.endLong(start);
    const told = Buffer.from(writer.written);
    const bytes = Math.max(2, varintBytes(length));
    assert.equal(told.length, 1 + bytes + length);
    let value = 0;
    for (let index = bytes; index > 0; index -= 1) value = value * 128 + (told[index]! & 0x7f);
    assert.equal(value, length);
    assert.ok(told.subarray(1 + bytes).every((byte) => byte === 7));
  }
});

test("times are told to the microsecond", () => {
  for (const micros of [0, 1, 999_999, 1_048_575, 1_048_576, 1_795_543_200_123_456, 4_102_444_800_000_001]) {
    const told = Buffer.from(
      written((writer) => writer.timeMs(1, micros / 1000)),
      "hex",
    );
    assert.equal(told.readBigUInt64LE(1), BigInt(micros) * 1000n);
  }
});

test("messages and texts are as long as they say, at every edge of a length", () => {
  for (const length of [0, 1, 126, 127, 128, 129, 42, 43, 16_383, 16_384, 16_385, 2_097_151, 2_097_152]) {
    const writer = new ProtobufWriter();
    const start = writer.begin(1);
    writer.raw(Buffer.alloc(length, 7));
    writer.end(start);
    writer.text(2, "é".repeat(length));
    const bytes = writer.written;
    const head = 1 + varintBytes(length);
    assert.ok(bytes.subarray(head, head + length).every((byte) => byte === 7));
    const second = head + length;
    assert.equal(bytes[second], 0x12);
    assert.equal(bytes.length, second + 1 + varintBytes(2 * length) + 2 * length);
    assert.equal(bytes.subarray(bytes.length - 2 * length).toString(), "é".repeat(length));
  }
});

test("attributes have the same bytes in one pass and piece by piece", () => {
  const texts = [0, 1, 40, 60, 117, 118, 119, 121, 122, 130].map((length) => "k".repeat(length));
  for (const key of [...texts, "clé"]) {
    for (const value of [...texts, "é", "😀", "\ud800"]) {
      const pieces = written((writer) => {
        const start = writer.begin(9);
        writer.text(1, key);
        const valueStart = writer.begin(2);
        writer.text(1, value);
        writer.end(valueStart);
        writer.end(start);
      });
      // A writer that has refused one goes on as if it had not been asked.
      const told = written((writer) => writeAttribute(writer, 9, key, value));
      assert.equal(told, pieces, `${key.length} and ${value.length} characters`);
    }
  }
});
