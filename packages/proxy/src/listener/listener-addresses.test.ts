// Which listener a redirected connection goes to, by the address that it was aimed at.
import assert from "node:assert/strict";
import { test } from "node:test";
import { ListenerAddresses } from "./listener-addresses.ts";

const addresses = new ListenerAddresses<string>();
addresses.add({ ip: "10.0.0.1", port: 80 }, "exact");
addresses.add({ ip: "10.0.0.1", port: 80 }, "a second one");
addresses.add({ ip: "0.0.0.0", port: 80 }, "any of IPv4");
addresses.add({ ip: "FD00:0:0::1", port: 80 }, "exact of IPv6");
addresses.add({ ip: "::", port: 80 }, "any of IPv6");
addresses.add({ ip: "::", port: 81, takesIpv4: true }, "both families");
addresses.add({ ip: "::", port: 82 }, "IPv6 alone");
addresses.add({ ip: "fe80::1%eth0", port: 83 }, "of one link");

const cases: readonly { readonly ip: string; readonly port: number; readonly expected: string | undefined }[] = [
  { ip: "10.0.0.1", port: 80, expected: "exact" },
  { ip: "10.0.0.2", port: 80, expected: "any of IPv4" },
  { ip: "fd00::1", port: 80, expected: "exact of IPv6" },
  { ip: "fd00::2", port: 80, expected: "any of IPv6" },
  { ip: "10.0.0.1", port: 81, expected: "both families" },
  { ip: "fd00::1", port: 81, expected: "both families" },
  { ip: "10.0.0.1", port: 82, expected: undefined },
  { ip: "10.0.0.1", port: 8, expected: undefined },
  { ip: "fe80::1", port: 83, expected: "of one link" },
];
for (const { ip, port, expected } of cases) {
  test(`${ip} port ${port}: ${expected ?? "none"}`, () => {
    assert.equal(addresses.find(ip, port), expected);
  });
}
