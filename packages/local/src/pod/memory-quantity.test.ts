// Kubernetes' quantities of memory.
import assert from "node:assert/strict";
import { test } from "node:test";
import { memoryQuantityBytes } from "./memory-quantity.ts";

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
