// However a stream comes in pieces, the messages are the same.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { LengthPrefixed, withLength } from "./length-prefixed.ts";

test("messages come whole out of any pieces", () => {
  const messages = fc.array(fc.uint8Array({ maxLength: 40 }), { maxLength: 5 });
  const cuts = fc.array(fc.integer({ min: 1, max: 30 }), { minLength: 1 });
  fc.assert(
    fc.property(messages, cuts, (sent, sizes) => {
      const stream = Buffer.concat(sent.map((message) => withLength(Buffer.from(message))));
      const prefixed = new LengthPrefixed();
      const received: Buffer[] = [];
      for (let at = 0, piece = 0; at < stream.length; piece += 1) {
        const end = at + sizes[piece % sizes.length]!;
        received.push(...prefixed.take(stream.subarray(at, end)));
        at = end;
      }
      assert.deepEqual(
        received,
        sent.map((message) => Buffer.from(message)),
      );
    }),
  );
});

test("the longest message comes byte by byte", () => {
  const message = Buffer.alloc(65_535, 7);
  const prefixed = new LengthPrefixed();
  const received: Buffer[] = [];
  for (const byte of withLength(message)) received.push(...prefixed.take(Buffer.of(byte)));
  assert.deepEqual(received, [message]);
});
