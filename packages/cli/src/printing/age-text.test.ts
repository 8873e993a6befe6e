// Ages as kubectl writes them.
import assert from "node:assert/strict";
import { test } from "node:test";
import { ageText } from "./age-text.ts";

const nowMs = Date.parse("2026-06-01T00:00:00Z");
const hour = 3600;
const cases = [
  { seconds: 0, expected: "0s" },
  { seconds: 119, expected: "119s" },
  { seconds: 120, expected: "2m" },
  { seconds: 130, expected: "2m10s" },
  { seconds: 605, expected: "10m" },
  { seconds: 179 * 60, expected: "179m" },
  { seconds: 3 * hour, expected: "3h" },
  { seconds: 3 * hour + 61, expected: "3h1m" },
  { seconds: 9.5 * hour, expected: "9h" },
  { seconds: 47 * hour, expected: "47h" },
  { seconds: 49 * hour, expected: "2d1h" },
  { seconds: 9 * 24 * hour + 1, expected: "9d" },
  { seconds: 800 * 24 * hour, expected: "2y70d" },
  { seconds: -1, expected: "0s" },
  { seconds: -60, expected: "<invalid>" },
];
for (const { seconds, expected } of cases) {
  test(`${seconds} seconds are ${expected}`, () => {
    assert.equal(ageText(new Date(nowMs - seconds * 1000).toISOString(), nowMs), expected);
  });
}

test("an age that nobody knows", () => {
  assert.equal(ageText(undefined, nowMs), "<unknown>");
});
