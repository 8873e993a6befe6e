// Messages are counted alike however their bytes are cut.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { GrpcFrameCounter } from "./grpc-frame-counter.ts";

function message(length: number): Buffer {
  const bytes = Buffer.alloc(5 + length, 0xff);
  bytes[0] = 0;
  bytes.writeUInt32BE(length, 1);
  return bytes;
}

const lengths = fc.array(fc.nat({ max: 300 }), { maxLength: 8 });
const cuts = fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 20 });

test("any messages, cut anywhere", () => {
  fc.assert(
    fc.property(lengths, cuts, (sizes, sliceBytes) => {
      const bytes = Buffer.concat(sizes.map(message));
      const counter = new GrpcFrameCounter();
      let sum = 0;
      for (let at = 0, turn = 0; at < bytes.length; turn += 1) {
        const next = at + sliceBytes[turn % sliceBytes.length]!;
        sum += counter.inspect(bytes.subarray(at, next));
        at = next;
      }
      assert.deepEqual([sum, counter.count], [sizes.length, sizes.length]);
    }),
  );
});

test("a message counts when it begins", () => {
  const counter = new GrpcFrameCounter();
  const bytes = message(1000);
  assert.equal(counter.inspect(bytes.subarray(0, 1)), 1);
  assert.equal(counter.inspect(bytes.subarray(1)), 0);
  assert.equal(counter.inspect(Buffer.alloc(0)), 0);
  assert.equal(counter.inspect(Buffer.concat([message(0), message(0)])), 2);
});

test("a length of four gigabytes is no negative one", () => {
  const counter = new GrpcFrameCounter();
  for (const byte of [0, 0xff, 0xff, 0xff, 0xff]) counter.inspect(Buffer.from([byte]));
  counter.inspect(Buffer.alloc(100_000));
  assert.equal(counter.count, 1);
});
