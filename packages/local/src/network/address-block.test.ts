// Blocks of loopback addresses: held by one instance at a time, with room for its pods.
import assert from "node:assert/strict";
import { test } from "node:test";
import { addressIn, claimBlock } from "./address-block.ts";

test("two claims never get the same block, and a released one is free again", async () => {
  const one = await claimBlock("/a/folder");
  const two = await claimBlock("/a/folder");
  assert.notEqual(one.index, two.index);
  one.close();
  two.close();
  const again = await claimBlock("/another", one.index);
  assert.equal(again.index, one.index);
  again.close();
});

test("addresses are handed out in turn, and rest after they were given back", async () => {
  const block = await claimBlock("/addresses");
  const first = block.allocate();
  const second = block.allocate();
  block.release(first);
  const third = block.allocate();
  assert.equal(new Set([first, second, third, block.controlPlaneAddress]).size, 4);
  while (block.free > 0) block.allocate();
  assert.throws(() => block.allocate(), /all 1020 loopback addresses/);
  block.release(second);
  assert.equal(block.free, 1);
  assert.equal(block.allocate(), second);
  block.close();
});

const places = [
  { index: 0, offset: 1, expected: "127.16.0.1" },
  { index: 1, offset: 2, expected: "127.16.4.2" },
  { index: 64, offset: 1023, expected: "127.17.3.255" },
  { index: 224 * 64 - 1, offset: 1, expected: "127.239.252.1" },
];
for (const { index, offset, expected } of places) {
  test(`block ${index} has ${expected}`, () => assert.equal(addressIn(index, offset), expected));
}
