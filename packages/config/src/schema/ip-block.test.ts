// Ranges that are equal have one text, however they are written.
import assert from "node:assert/strict";
import { test } from "node:test";
import { rangeText } from "./ip-block.ts";

for (const { input, expected } of [
  { input: "10.1.2.3/8", expected: "10.0.0.0/8" },
  { input: "10.1.2.3", expected: "10.1.2.3/32" },
  { input: "255.255.255.255/1", expected: "128.0.0.0/1" },
  { input: "1.2.3.4/0", expected: "0.0.0.0/0" },
  { input: "2001:DB8::1:2:3/48", expected: "2001:db8::/48" },
  { input: "ffff:ffff::/1", expected: "8000::/1" },
  { input: "::1/0", expected: "::/0" },
  { input: "::ffff:10.1.2.3/112", expected: "::ffff:a01:0/112" },
  { input: "1:2:3:4:5:6:7:8/127", expected: "1:2:3:4:5:6:7:8/127" },
  { input: "10.0.0.0/33", expected: undefined },
  { input: "fe80::1%eth0/64", expected: undefined },
]) {
  test(`${input} is ${expected ?? "no range"}`, () => assert.equal(rangeText(input), expected));
}
