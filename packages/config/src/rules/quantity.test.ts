// Kubernetes' quantities, of memory and of anything.
import assert from "node:assert/strict";
import { test } from "node:test";
import { memoryQuantityBytes, parseQuantity, quantityIn } from "./quantity.ts";

const quantities: readonly { readonly input: string; readonly expected: number | undefined }[] = [
  { input: "134217728", expected: 134_217_728 },
  { input: "128Mi", expected: 134_217_728 },
  { input: "1.5Gi", expected: 1_610_612_736 },
  { input: "1G", expected: 1_000_000_000 },
  { input: "64k", expected: 64_000 },
  { input: "", expected: undefined },
  { input: "0", expected: undefined },
  { input: "-1Mi", expected: undefined },
  { input: "1 Mi", expected: undefined },
  { input: "1Zi", expected: undefined },
  { input: "much", expected: undefined },
  { input: "1constructor", expected: undefined },
];

for (const { input, expected } of quantities) {
  test(`"${input}"`, () => assert.equal(memoryQuantityBytes(input), expected));
}

for (const { input, unit, expected } of [
  { input: "1500m", unit: "1", expected: 2n },
  { input: "0.1", unit: "1m", expected: 100n },
  { input: "1e3", unit: "1", expected: 1000n },
  { input: "2E", unit: "1P", expected: 2000n },
  { input: "1u", unit: "1n", expected: 1000n },
  { input: ".5Gi", unit: "1Mi", expected: 512n },
  { input: "8Ei", unit: "1", expected: 9_223_372_036_854_775_808n },
]) {
  test(`"${input}" in "${unit}"`, () =>
    assert.equal(quantityIn(parseQuantity(input)!, parseQuantity(unit)!), expected));
}

for (const input of ["", ".", "e3", "1e999", "1kk", "1ki", "9".repeat(40)]) {
  test(`"${input.slice(0, 10)}" is no quantity`, () => assert.equal(parseQuantity(input), undefined));
}
