// How long and how many verified tokens are remembered.
import assert from "node:assert/strict";
import { test } from "node:test";
import { type Jwt, parseJwt } from "./parse-jwt.ts";
import { TokenCache } from "./token-cache.ts";

const encode = (value: object): string => Buffer.from(JSON.stringify(value)).toString("base64url");

function jwt(exp?: number): Jwt {
  const parsed = parseJwt(`${encode({ alg: "RS256" })}.${encode({ exp })}.aa`);
  assert.ok(typeof parsed === "object");
  return parsed;
}

test("a token is found until its end and the clock skew", () => {
  const cache = new TokenCache();
  cache.keep("a", jwt(1000), "keys", 60);
  assert.ok(cache.find("a", 1060));
  assert.equal(cache.find("a", 1061), undefined);
  assert.equal(cache.size, 0);
});

test("a token without an end is found at any time", () => {
  const cache = new TokenCache();
  cache.keep("a", jwt(), "keys", 60);
  assert.ok(cache.find("a", 1e12));
});

test("the token that was used longest ago leaves", () => {
  const cache = new TokenCache(2);
  cache.keep("a", jwt(), "keys", 60);
  cache.keep("b", jwt(), "keys", 60);
  cache.find("a", 0);
  cache.keep("c", jwt(), "keys", 60);
  assert.deepEqual(
    ["a", "b", "c"].map((digest) => cache.find(digest, 0) !== undefined),
    [true, false, true],
  );
});

test("the key sets of a token are bounded", () => {
  const cache = new TokenCache();
  for (let version = 0; version < 100; version += 1) cache.keep("a", jwt(), String(version), 60);
  const versions = cache.find("a", 0)!.keySetVersions;
  assert.ok(versions.has("99"));
  assert.ok(versions.size <= 8);
});

test("long tokens are not kept", () => {
  const cache = new TokenCache();
  assert.equal(cache.digest("a".repeat(4097)), undefined);
  assert.notEqual(cache.digest("a".repeat(4096)), undefined);
});
