// Texts of times in access logs, to the microsecond.
import assert from "node:assert/strict";
import { test } from "node:test";
import { compileTimeFormat, isoTime, localIsoTime } from "./start-time.ts";

const timeMs = Date.UTC(2026, 10, 20, 12, 0, 7, 123) + 0.456;

for (const { format, expected } of [
  { format: "%S.%f", expected: "07.123456000" },
  { format: "%3f %4f %6f %9f", expected: "123 1234 123456 123456000" },
  { format: "%s", expected: "1795176007" },
]) {
  for (const zone of ["utc", "local"] as const) {
    test(`${format} of ${zone} time has microseconds`, () => {
      const write = compileTimeFormat(format, zone);
      assert.ok(typeof write === "function");
      if (format !== "%s" || new Date(timeMs).getTimezoneOffset() === 0) assert.equal(write(timeMs), expected);
    });
  }
}

test("a fraction never becomes the next second", () => {
  const write = compileTimeFormat("%S.%6f");
  assert.ok(typeof write === "function");
  assert.equal(write(Date.UTC(2026, 10, 20, 12, 0, 7, 999) + 0.9997), "07.999999");
});

test("without a format, times have whole milliseconds", () => {
  assert.equal(isoTime(timeMs), "2026-11-20T12:00:07.123Z");
  assert.match(localIsoTime(timeMs), /:07\.123[+-]\d{4}$/);
});
