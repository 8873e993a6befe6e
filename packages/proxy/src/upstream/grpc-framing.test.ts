// Messages within the bytes of a gRPC stream, however these are cut, and what is kept of one that comes in the smallest
// pieces.
import assert from "node:assert/strict";
import { test } from "node:test";
import { framed, MessageReader } from "./grpc-framing.ts";

const messages = ["", "a", "bc", "x".repeat(10_000), "", "d"].map((text) => Buffer.from(text));
const bytes = Buffer.concat(messages.map(framed));

for (const size of [1, 2, 3, 5, 6, 7, 4096, bytes.length]) {
  test(`pieces of ${size} bytes`, () => {
    const seen: Buffer[] = [];
    const reader = new MessageReader(10_000, (message) => seen.push(message));
    for (let at = 0; at < bytes.length; at += size) {
      assert.equal(reader.take(Buffer.from(bytes.subarray(at, at + size))), undefined);
    }
    assert.deepEqual(seen, messages);
  });
}

test("a message that comes byte by byte takes its own length, not an object a byte", () => {
  const length = 1024 * 1024;
  const reader = new MessageReader(length, () => {});
  reader.take(framed(Buffer.alloc(length)).subarray(0, 5));
  let most = 0;
  for (let sent = 0; sent < length - 1; sent += 1) {
    reader.take(Buffer.alloc(1));
    most = Math.max(most, reader.keptBytes);
  }
  assert.equal(most, length);
});

test("what is compressed or too large ends the stream, and no byte of it is kept", () => {
  for (const [prefix, words] of [
    [[1, 0, 0, 0, 1], /compressed/],
    [[0, 0, 0, 0, 11], /11 bytes is larger than the limit of 10/],
  ] as const) {
    const reader = new MessageReader(10, () => assert.fail());
    assert.match(reader.take(Buffer.from(prefix)) ?? "", words);
    assert.equal(reader.keptBytes, 0);
  }
});
