// The stage's browser must not fail a test by chance.
import assert from "node:assert/strict";
import { test } from "node:test";
import { isDeleted } from "./sign-in-stage.ts";

const lines: readonly { readonly name: string; readonly line: string; readonly expected: boolean }[] = [
  { name: "Envoy's and ours", line: "a=deleted; path=/; expires=Thu, 01 Jan 1970 00:00:00 GMT", expected: true },
  { name: "no time to live", line: "a=; Max-Age=0; path=/", expected: true },
  { name: "a random value that holds the year", line: "a=f1970; path=/; Max-Age=600", expected: false },
  { name: "a random value that looks like an attribute", line: "a=max-age=0; path=/", expected: false },
  { name: "a path that holds the year", line: "a=b; path=/1970", expected: false },
  { name: "a time to live that begins with 0", line: "a=b; max-age=06", expected: false },
];

for (const { name, line, expected } of lines) {
  test(`a cookie is deleted by its attributes: ${name}`, () => assert.equal(isDeleted(line), expected));
}
