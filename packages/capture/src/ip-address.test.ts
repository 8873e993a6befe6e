// Addresses in their two written forms and the kernel's one.
import assert from "node:assert/strict";
import { test } from "node:test";
import { addressBytes, addressText } from "./ip-address.ts";

const cases: readonly { readonly ip: string; readonly hex: string | undefined; readonly text?: string }[] = [
  { ip: "127.16.4.3", hex: "7f100403", text: "127.16.4.3" },
  { ip: "::ffff:127.16.4.3", hex: "7f100403", text: "127.16.4.3" },
  { ip: "::ffff:7f10:403", hex: "7f100403" },
  { ip: "::1", hex: "00000000000000000000000000000001", text: "[::1]" },
  { ip: "::", hex: "00000000000000000000000000000000", text: "[::]" },
  { ip: "2001:db8::a:0:0:1", hex: "20010db800000000000a000000000001", text: "[2001:db8::a:0:0:1]" },
  { ip: "fd00::", hex: "fd000000000000000000000000000000" },
  { ip: "1:2:3:4:5:6:7:8", hex: "00010002000300040005000600070008", text: "[1:2:3:4:5:6:7:8]" },
  { ip: "64:ff9b::192.0.2.33", hex: "0064ff9b0000000000000000c0000221", text: "[64:ff9b::c000:221]" },
  { ip: "fe80::1%eth0", hex: undefined },
  { ip: "localhost", hex: undefined },
];
for (const { ip, hex, text } of cases) {
  test(`${ip} is ${hex ?? "no address that a socket can be asked for by"}`, () => {
    const bytes = addressBytes(ip);
    assert.equal(bytes && Buffer.from(bytes).toString("hex"), hex);
    if (text !== undefined) assert.equal(addressText(bytes!), text);
  });
}
