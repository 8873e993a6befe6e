// When a new connection's descriptor is one of the last, and how often that is told.
import assert from "node:assert/strict";
import { test } from "node:test";
import { DescriptorReserve } from "./descriptor-reserve.ts";

const silent = { error: () => undefined, info: () => undefined };

for (const { name, limit, last } of [
  { name: "an eighth of a small limit is kept back", limit: 100, last: 86 },
  { name: "of a large one no more than 64", limit: 1_048_576, last: 1_048_511 },
  { name: "without a limit nothing is", limit: Infinity, last: 2_000_000 },
]) {
  test(name, () => {
    const reserve = new DescriptorReserve(silent, limit);
    assert.equal(reserve.refuses(last, 0), false);
    if (limit !== Infinity) assert.equal(reserve.refuses(last + 1, 0), true);
  });
}

test("a shortage is told once, and its end when nobody was refused for a while", () => {
  const told: string[] = [];
  const log = {
    error: (message: string) => void told.push(message),
    info: (message: string) => void told.push(message),
  };
  const reserve = new DescriptorReserve(log, 100);
  for (const [descriptor, nowMs] of [
    [90, 0],
    [91, 5],
    [20, 10],
    [95, 20],
    [20, 5_000],
    [20, 10_020],
    [21, 10_021],
  ] as const) {
    reserve.refuses(descriptor, nowMs);
  }
  assert.deepEqual(told, ["connections are refused: too many files are open", "connections are accepted again"]);
});
