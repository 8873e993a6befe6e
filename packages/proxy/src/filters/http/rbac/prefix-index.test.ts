// Prefixes of a text among many, against a walk through all of them.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { PrefixIndex } from "./prefix-index.ts";

const text = fc.string({ unit: fc.constantFrom("/", "a", "b", "é"), maxLength: 6 });

test("finds every text that a value begins with, and no other", () => {
  fc.assert(
    fc.property(fc.uniqueArray(text, { maxLength: 30 }), fc.array(text, { maxLength: 20 }), (texts, values) => {
      const index = new PrefixIndex(new Map(texts.map((one, id) => [one, [id]])));
      for (const value of values) {
        const found: number[] = [];
        index.collect(value, found);
        const expected = texts.flatMap((one, id) => (value.startsWith(one) ? [id] : []));
        assert.deepEqual(
          found.sort((a, b) => a - b),
          expected,
        );
      }
    }),
  );
});
