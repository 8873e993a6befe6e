// Hosts that a connection was not made for, by what its handshake showed.
import assert from "node:assert/strict";
import { test } from "node:test";
import { type ConnectionNames, isMisdirected, misdirected } from "./misdirected.ts";

const shown = (serverName: string, dnsSans: readonly string[], ipSans: readonly string[] = []): ConnectionNames =>
  ({ serverName, tls: { local: { dnsSans, ipSans } } }) as unknown as ConnectionNames;

const rows: readonly (readonly [name: string, connection: ConnectionNames, authority: string, expected: boolean])[] = [
  ["the host that was asked for", shown("a.example", ["a.example"]), "a.example", false],
  ["the same in capitals, with a port", shown("a.example", ["a.example"]), "A.example:443", false],
  ["asked for though the certificate is another's", shown("a.example", ["b.example"]), "a.example", false],
  ["another host of the certificate", shown("a.example", ["a.example", "b.example"]), "b.example:8443", false],
  ["under its wildcard", shown("a.example", ["*.example"]), "b.example", false],
  ["two labels under its wildcard", shown("a.example", ["*.example"]), "c.b.example", true],
  ["another host", shown("a.example", ["a.example"]), "b.example", true],
  ["an address of the certificate", shown("a.example", ["a.example"], ["192.0.2.1"]), "192.0.2.1:443", false],
  ["another address", shown("a.example", ["a.example"], ["192.0.2.1"]), "192.0.2.2", true],
  ["an address of IPv6", shown("a.example", ["a.example"], ["2001:db8::1"]), "[2001:db8::1]:443", false],
  ["a client that named no host", shown("", ["a.example"]), "b.example", false],
  ["a workload's certificate, without hosts", shown("outbound_.80_._.a", []), "b", false],
  ["plain text", { serverName: "a.example", tls: undefined }, "b.example", false],
];

test("what is answered", () => {
  assert.deepEqual([misdirected.status, misdirected.details], [421, "misdirected_request"]);
});

for (const [name, connection, authority, expected] of rows) {
  test(`misdirected: ${name}`, () => {
    assert.equal(isMisdirected(connection, authority), expected);
  });
}
