// Whatever comes before a connection's bytes is read in bounds, whole and in pieces; what a header means is compared
// with Envoy's reading in proxy-protocol-parity.test.ts.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { readProxyHeader } from "./proxy-header.ts";

const signature = Buffer.from("0d0a0d0a000d0a515549540a", "hex");
const beginnings = fc.constantFrom(
  Buffer.alloc(0),
  Buffer.from("PROXY "),
  Buffer.from("PROXY TCP4 203.0.113.7 192.0.2.1 "),
  signature,
  Buffer.concat([signature, Buffer.from("21110", "latin1")]),
  Buffer.concat([signature, Buffer.from([0x21, 0x11, 0, 12])]),
  Buffer.concat([signature, Buffer.from([0x21, 0x21, 0, 60])]),
  Buffer.concat([signature, Buffer.from([0x20, 0x00, 0, 3])]),
);

test("a header never takes more than is there, and bytes behind it change nothing", () => {
  fc.assert(
    fc.property(beginnings, fc.uint8Array({ minLength: 1, maxLength: 120 }), (beginning, rest) => {
      const data = Buffer.concat([beginning, rest]);
      const read = readProxyHeader(data);
      if (read.kind !== "header") return;
      const { lengthBytes } = read.header;
      assert.ok(lengthBytes <= data.length);
      const alone = readProxyHeader(data.subarray(0, lengthBytes));
      assert.deepEqual(alone, read);
      for (let length = 1; length < lengthBytes; length += 1)
        assert.equal(readProxyHeader(data.subarray(0, length)).kind, "wait");
    }),
    { numRuns: 2000 },
  );
});

test("a line without an end is given up after 107 bytes", () => {
  const line = Buffer.from(`PROXY UNKNOWN ${"x".repeat(200)}`);
  assert.equal(readProxyHeader(line.subarray(0, 106)).kind, "wait");
  assert.equal(readProxyHeader(line.subarray(0, 107)).kind, "endless");
});
