// What is kept of a body costs about what it is long, however it comes.
import assert from "node:assert/strict";
import { test } from "node:test";
import { BodyBlocks } from "./body-blocks.ts";

const cases: readonly { readonly name: string; readonly sizes: readonly number[]; readonly maxBlocks: number }[] = [
  { name: "one piece", sizes: [100], maxBlocks: 1 },
  { name: "only an end", sizes: [0], maxBlocks: 1 },
  { name: "a piece and an end", sizes: [100, 0], maxBlocks: 1 },
  { name: "byte by byte", sizes: Array.from({ length: 20_000 }, () => 1), maxBlocks: 6 },
  { name: "large pieces", sizes: [65_536, 65_536, 10, 65_536], maxBlocks: 4 },
  { name: "pieces that never fill a block", sizes: Array.from({ length: 100 }, () => 4095), maxBlocks: 101 },
];

for (const { name, sizes, maxBlocks } of cases) {
  test(name, () => {
    const body = new BodyBlocks();
    const sent: Buffer[] = [];
    for (const [index, size] of sizes.entries()) {
      const chunk = Buffer.alloc(size, index % 251);
      sent.push(Buffer.from(chunk));
      body.keep(chunk);
      // The read buffer is used again.
      chunk.fill(0xff);
    }
    const whole = Buffer.concat(sent);
    assert.equal(body.bytes, whole.length);
    assert.deepEqual(Buffer.concat(body.all), whole);
    assert.ok(body.all.length >= 1 && body.all.length <= maxBlocks, String(body.all.length));
  });
}
