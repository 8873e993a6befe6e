// Names as certificates carry them, and host names under wildcards.
import assert from "node:assert/strict";
import type { X509Certificate } from "node:crypto";
import { test } from "node:test";
import { matchesDnsName, peerNames } from "./peer-names.ts";

for (const { name, text, expected } of [
  { name: "none", text: undefined, expected: [] },
  {
    name: "several kinds",
    text: "DNS:a.test, URI:spiffe://d/ns/n/sa/s, IP Address:10.0.0.1, email:a@b.test",
    expected: ["dns a.test", "uri spiffe://d/ns/n/sa/s", "ip_address 10.0.0.1", "email a@b.test"],
  },
  { name: "IPv6", text: "IP Address:2001:DB8:0:0:0:0:0:1", expected: ["ip_address 2001:db8::1"] },
  {
    name: "a name that looks like two is one",
    text: 'URI:"http://a.test/, DNS:b.test"',
    expected: ["uri http://a.test/, DNS:b.test"],
  },
  { name: "a quoted quote", text: String.raw`DNS:"a\"b, DNS:c"`, expected: ['dns a"b, DNS:c'] },
  { name: "kinds that nothing matches on", text: 'othername:<unsupported>, DNS:"a\\u0000b"', expected: ["dns a\0b"] },
  { name: "what is not understood to its end", text: 'DNS:a.test, DNS:"b', expected: [] },
]) {
  test(`names: ${name}`, () => {
    const found = peerNames({ subjectAltName: text } as X509Certificate);
    assert.deepEqual(
      found.map(({ type, value }) => `${type} ${value}`),
      expected,
    );
  });
}

for (const [pattern, host, expected] of [
  ["a.test", "A.test", true],
  ["a.test", "b.test", false],
  ["*.test", "a.test", true],
  ["*.test", "a.b.test", false],
  ["*.test", ".test", false],
  ["*.test", "test", false],
  ["a*.test", "ab.test", true],
  ["a*c.test", "abc.test", true],
  ["a*c.test", "ab.test", false],
  ["a.*.test", "a.b.test", false],
  ["*.*.test", "a.b.test", false],
  ["xn--a*.test", "xn--ab.test", false],
  ["*", "test", false],
] as const) {
  test(`${pattern} ${expected ? "covers" : "does not cover"} ${host}`, () => {
    assert.equal(matchesDnsName(pattern, host), expected);
  });
}
