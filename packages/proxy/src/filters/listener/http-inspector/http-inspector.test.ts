// Which plain connections speak HTTP, by their first line.
import assert from "node:assert/strict";
import { test } from "node:test";
import { RequestLineReader } from "./http-inspector.ts";

const cases: readonly { readonly input: string; readonly expected: string }[] = [
  { input: "GET / HTTP/1.1\r\n", expected: "http/1.1" },
  { input: "GET / HTTP/1.1\n", expected: "http/1.1" },
  { input: "PURGE  /x  HTTP/1.1\r\nHost: a", expected: "http/1.1" },
  { input: "GET / HTTP/1.0\r\n", expected: "http/1.0" },
  { input: "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0", expected: "h2c" },
  { input: "PRI * HTTP/2.0\r\n", expected: "incomplete" },
  { input: "P", expected: "incomplete" },
  { input: "POST", expected: "incomplete" },
  { input: "POST /a", expected: "incomplete" },
  { input: "POST /a HTT", expected: "incomplete" },
  { input: "POST /a HTTP/1.1\r", expected: "incomplete" },
  { input: "\r\nGET / HTTP/1.1\r\n", expected: "other" },
  { input: "GET /\r\n", expected: "other" },
  { input: "GET / SIP/2.0\r\n", expected: "other" },
  { input: "GET / SI", expected: "other" },
  { input: "\u0016\u0003\u0001", expected: "other" },
  { input: "SSH-2.0-OpenSSH_9.2\r\n", expected: "other" },
  { input: "*1\r\n$4\r\nPING\r\n", expected: "other" },
  { input: "G\0T", expected: "other" },
];

for (const { input, expected } of cases) {
  test(`${JSON.stringify(input)}: ${expected}`, () => {
    const data = Buffer.from(input, "latin1");
    assert.equal(new RequestLineReader().read(data), expected);
    // Byte by byte: nothing else comes of it on the way.
    const reader = new RequestLineReader();
    const found = Array.from(data, (_, index) => reader.read(data.subarray(0, index + 1)));
    assert.equal(found.find((finding) => finding !== "incomplete") ?? "incomplete", expected);
  });
}

test("a request line in pieces is never taken for anything else", () => {
  const line = Buffer.from("GET /a/b?c=d HTTP/1.1\r\n");
  for (let length = 1; length < line.length; length += 1)
    assert.equal(new RequestLineReader().read(line.subarray(0, length)), "incomplete");
});
