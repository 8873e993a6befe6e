// Base64 in chunks: what Node's own encoder writes, cut and padded anywhere, and what is none.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { Base64Reader } from "./base64-reader.ts";

test("parts with padding of their own, cut anywhere", () => {
  const parts = fc.array(fc.uint8Array({ minLength: 1, maxLength: 50 }), { maxLength: 6 });
  fc.assert(
    fc.property(parts, fc.integer({ min: 1, max: 9 }), (pieces, sliceBytes) => {
      const text = Buffer.from(pieces.map((piece) => Buffer.from(piece).toString("base64")).join(""));
      const reader = new Base64Reader();
      const read: Buffer[] = [];
      for (let at = 0; at < text.length; at += sliceBytes) read.push(reader.read(text.subarray(at, at + sliceBytes))!);
      assert.deepEqual(Buffer.concat(read), Buffer.concat(pieces.map((piece) => Buffer.from(piece))));
      assert.equal(reader.isComplete, true);
    }),
  );
});

for (const text of ["AA=A", "A===", "====", "AB==", "AAB=", "AA\n=", "AA-_", "AA==="]) {
  test(`no base64: ${JSON.stringify(text)}`, () => {
    assert.equal(new Base64Reader().read(Buffer.from(text)), undefined);
  });
}

test("what is missing is known", () => {
  const reader = new Base64Reader();
  reader.read(Buffer.from("AAAAA"));
  assert.equal(reader.isComplete, false);
  assert.equal(reader.read(Buffer.from("AAA"))?.length, 3);
  assert.equal(reader.isComplete, true);
});
