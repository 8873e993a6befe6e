// Which destinations lead back to a listener of the proxy, in whatever form they are written.
import assert from "node:assert/strict";
import { test } from "node:test";
import { reaches } from "./reaches.ts";

const anyIpv4 = { ip: "0.0.0.0", port: 80 };
const anyIpv6 = { ip: "::", port: 80 };
const bothFamilies = { ip: "::", port: 80, takesIpv4: true };
const loopback = { ip: "127.0.0.1", port: 80 };
const loopback6 = { ip: "::1", port: 80 };
/** Of documentation (RFC 5737, RFC 3849): no machine has it. */
const [elsewhere, elsewhere6] = ["192.0.2.7", "2001:db8::7"];

for (const [ip, own, expected] of [
  ["127.0.0.1", loopback, true],
  ["127.0.0.2", loopback, false],
  ["::ffff:127.0.0.1", loopback, true],
  ["0.0.0.0", loopback, true],
  ["::ffff:0.0.0.0", loopback, true],
  ["::", loopback, false],
  ["::1", loopback6, true],
  ["::", loopback6, true],
  ["127.0.0.2", anyIpv4, true],
  ["0.0.0.0", anyIpv4, true],
  ["::ffff:127.0.0.9", anyIpv4, true],
  ["::1", anyIpv4, false],
  [elsewhere, anyIpv4, false],
  ["::1", anyIpv6, true],
  ["::", anyIpv6, true],
  ["127.0.0.1", anyIpv6, false],
  [elsewhere6, anyIpv6, false],
  ["127.0.0.1", bothFamilies, true],
  ["::ffff:127.0.0.1", bothFamilies, true],
  ["::1", bothFamilies, true],
] as const) {
  test(`${ip} ${expected ? "reaches" : "does not reach"} ${JSON.stringify(own)}`, () => {
    assert.equal(reaches(ip, 80, own), expected);
    assert.equal(reaches(ip, 81, own), false);
  });
}
