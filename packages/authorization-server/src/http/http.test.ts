// The small readers of the HTTP side: addresses behind proxies, cookies, fetch metadata.
import assert from "node:assert/strict";
import { test } from "node:test";
import { hstsHeader } from "./hsts.ts";
import { testConfig } from "../testing/test-server.ts";
import { addressReader } from "./client-address.ts";
import { readCookie } from "./cookies.ts";
import { isOwnForm } from "./fetch-metadata.ts";

test("the client's address is believed only as far as trusted proxies wrote it", () => {
  const cases: readonly { trusted: string[]; peer: string; forwarded?: string; expected: string }[] = [
    { trusted: [], peer: "10.0.0.1", forwarded: "1.2.3.4", expected: "10.0.0.1" },
    { trusted: ["10.0.0.0/8"], peer: "10.0.0.1", forwarded: "1.2.3.4", expected: "1.2.3.4" },
    { trusted: ["10.0.0.0/8"], peer: "10.0.0.1", forwarded: "6.6.6.6, 1.2.3.4, 10.0.0.2", expected: "1.2.3.4" },
    { trusted: ["10.0.0.0/8"], peer: "8.8.8.8", forwarded: "1.2.3.4", expected: "8.8.8.8" },
    { trusted: ["10.0.0.0/8"], peer: "10.0.0.1", forwarded: "nonsense", expected: "10.0.0.1" },
    { trusted: ["::1", "fd00::/8"], peer: "::1", forwarded: "2001:db8::1, fd00::5", expected: "2001:db8::1" },
    { trusted: ["127.0.0.1"], peer: "::ffff:127.0.0.1", forwarded: "1.2.3.4", expected: "1.2.3.4" },
  ];
  for (const { trusted, peer, forwarded, expected } of cases) {
    assert.equal(addressReader(trusted)(peer, forwarded), expected, `${peer} ${forwarded}`);
  }
  assert.throws(() => addressReader(["localhost"]), /no address/);
});

test("cookies are read by their full name and shape", () => {
  const config = testConfig("/nowhere");
  const secret = "c".repeat(43);
  assert.equal(readCookie(config, `a=b; tulle_session=${secret}`, "session"), secret);
  assert.equal(readCookie(config, `tulle_session=short; tulle_session=${secret}`, "session"), secret);
  assert.equal(readCookie(config, `xtulle_session=${secret}`, "session"), undefined);
  assert.equal(readCookie(config, undefined, "session"), undefined);
});

test("forms of ours, by origin and fetch metadata", () => {
  const issuer = "https://auth.example";
  const cases: readonly [Record<string, string>, boolean][] = [
    [{}, true],
    [{ origin: issuer }, true],
    [{ origin: issuer, "sec-fetch-site": "same-origin" }, true],
    [{ origin: "null", "sec-fetch-site": "same-origin" }, true],
    [{ origin: "null" }, false],
    [{ origin: "https://evil.example" }, false],
    [{ "sec-fetch-site": "same-site" }, false],
    [{ origin: issuer, "sec-fetch-site": "cross-site" }, false],
  ];
  for (const [headers, expected] of cases) assert.equal(isOwnForm(headers, issuer), expected, JSON.stringify(headers));
});

test("browsers are told to keep to https only for a host that is the server's own to speak for", () => {
  for (const { issuer, expected } of [
    { issuer: "https://auth.example", expected: "max-age=31536000" },
    { issuer: "https://auth.example/oauth2", expected: "max-age=31536000" },
    { issuer: "https://auth.example:8443", expected: undefined },
    { issuer: "http://localhost:9400", expected: undefined },
    { issuer: "https://localhost", expected: undefined },
    { issuer: "https://auth.localhost", expected: undefined },
    { issuer: "https://192.0.2.1", expected: undefined },
    { issuer: "https://[2001:db8::1]", expected: undefined },
  ]) {
    assert.equal(hstsHeader(issuer), expected, issuer);
  }
});
