// The narrowest pattern for a host, and what two patterns share.
import assert from "node:assert/strict";
import { test } from "node:test";
import { HostIndex, hostIntersection } from "./host-match.ts";

const patterns = ["*.example.com", "*", "*.shop.example.com", "a.shop.example.com", "*.example.com"];
const found: readonly { host: string; expected: number }[] = [
  { host: "a.shop.example.com", expected: 3 },
  { host: "b.shop.example.com", expected: 2 },
  { host: "example.com", expected: 1 },
  { host: "b.example.com", expected: 0 },
  { host: "elsewhere", expected: 1 },
];

for (const { host, expected } of found) {
  test(`${host} is covered by ${patterns[expected]}`, () => {
    const index = new HostIndex(patterns.map((pattern, position) => [pattern, position] as const));
    assert.equal(index.find(host), expected);
  });
}

test("nothing covers a host", () => assert.equal(new HostIndex([["*.a", 1]]).find("b"), undefined));

const shared: readonly { one: string; other: string; expected: string | undefined }[] = [
  { one: "*", other: "a.b", expected: "a.b" },
  { one: "a.b", other: "*", expected: "a.b" },
  { one: "*.b", other: "*.a.b", expected: "*.a.b" },
  { one: "a.b", other: "a.b", expected: "a.b" },
  { one: "*.b", other: "b", expected: undefined },
  { one: "*.a", other: "*.b", expected: undefined },
];

for (const { one, other, expected } of shared) {
  test(`${one} and ${other} share ${expected ?? "nothing"}`, () =>
    assert.equal(hostIntersection(one, other), expected));
}
