// What is kept of a body costs about what it is long, however it comes.
import assert from "node:assert/strict";
import { test } from "node:test";
import { BufferPool } from "../worker/buffer-pool.ts";
import { BodyBlocks } from "./body-blocks.ts";

const cases: readonly { readonly name: string; readonly sizes: readonly number[]; readonly maxBlocks: number }[] = [
  { name: "one piece", sizes: [100], maxBlocks: 1 },
  { name: "only an end", sizes: [0], maxBlocks: 1 },
  { name: "a piece and an end", sizes: [100, 0], maxBlocks: 1 },
  { name: "byte by byte", sizes: Array.from({ length: 20_000 }, () => 1), maxBlocks: 6 },
  { name: "large pieces", sizes: [65_536, 65_536, 10, 65_536], maxBlocks: 4 },
  { name: "pieces that never fill a block", sizes: Array.from({ length: 100 }, () => 4095), maxBlocks: 101 },
  { name: "pieces of a long body", sizes: Array.from({ length: 64 }, () => 16_384), maxBlocks: 64 },
  { name: "uneven pieces of a long body", sizes: [100, 70_000, 3, 200_000, 0, 65_533], maxBlocks: 8 },
];

/** Keeps pieces of such sizes, and gives all that they were. */
function keepAll(body: BodyBlocks, sizes: readonly number[]): Buffer {
  const sent = sizes.map((size, index) => {
    const chunk = Buffer.alloc(size, index % 251);
    const copy = Buffer.from(chunk);
    body.keep(chunk);
    // The read buffer is used again.
    chunk.fill(0xff);
    return copy;
  });
  return Buffer.concat(sent);
}

for (const { name, sizes, maxBlocks } of cases) {
  for (const buffers of [undefined, new BufferPool()]) {
    test(buffers === undefined ? name : `${name}, with a pool`, () => {
      const body = new BodyBlocks(buffers);
      const whole = keepAll(body, sizes);
      assert.equal(body.bytes, whole.length);
      assert.deepEqual(Buffer.concat(body.all), whole);
      assert.ok(body.all.length >= 1 && body.all.length <= maxBlocks, String(body.all.length));
    });
  }
}

test("what is lent goes back, and does not change what another body has kept", () => {
  const buffers = new BufferPool();
  const sizes = Array.from({ length: 10 }, () => 50_000);
  const first = new BodyBlocks(buffers);
  keepAll(first, sizes);
  const lent = new Set(first.all.map(({ buffer }) => buffer));
  first.release();
  assert.deepEqual([first.bytes, first.all.length], [0, 0]);
  const [second, third] = [new BodyBlocks(buffers), new BodyBlocks(buffers)];
  const wholeSecond = keepAll(second, sizes);
  const wholeThird = keepAll(third, sizes.toReversed());
  assert.ok(second.all.some(({ buffer }) => lent.has(buffer)));
  assert.deepEqual(Buffer.concat(second.all), wholeSecond);
  assert.deepEqual(Buffer.concat(third.all), wholeThird);
});
