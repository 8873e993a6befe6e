// Whose requests the API answers: programs of this machine, not pages of a browser that lives on it.
import assert from "node:assert/strict";
import type { IncomingHttpHeaders } from "node:http";
import { test } from "node:test";
import { isLocalRequest } from "./is-local-request.ts";

const cases: readonly { name: string; headers: IncomingHttpHeaders; expected: boolean }[] = [
  { name: "localhost", headers: { host: "localhost:15014" }, expected: true },
  { name: "a loopback address", headers: { host: "127.80.12.1:15014" }, expected: true },
  { name: "IPv6 loopback", headers: { host: "[::1]:15014" }, expected: true },
  { name: "the address it listens on", headers: { host: "10.0.0.7:15014" }, expected: true },
  { name: "another address", headers: { host: "10.0.0.8:15014" }, expected: false },
  { name: "a name that was pointed here", headers: { host: "evil.example:15014" }, expected: false },
  { name: "a name that looks local", headers: { host: "localhost.evil.example" }, expected: false },
  { name: "a name that begins like an address", headers: { host: "127.0.0.1.evil.example" }, expected: false },
  { name: "no host", headers: {}, expected: false },
  { name: "a broken host", headers: { host: "[::1" }, expected: false },
  { name: "a page of this machine", headers: { host: "localhost", origin: "http://localhost:8080" }, expected: true },
  { name: "a page from elsewhere", headers: { host: "localhost", origin: "https://evil.example" }, expected: false },
  { name: "a page without an origin", headers: { host: "localhost", origin: "null" }, expected: false },
  { name: "another site's fetch", headers: { host: "localhost", "sec-fetch-site": "cross-site" }, expected: false },
];

for (const { name, headers, expected } of cases) {
  test(`${name}: ${expected ? "answered" : "refused"}`, () => {
    assert.equal(isLocalRequest(headers, "10.0.0.7"), expected);
  });
}
