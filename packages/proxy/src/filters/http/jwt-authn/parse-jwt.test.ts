// Tokens that are none, each with the words that clients and access logs read, as Envoy has them.
import assert from "node:assert/strict";
import { generateKeyPairSync } from "node:crypto";
import { test } from "node:test";
import { jwtFailures } from "./jwt-failure.ts";
import { readKeySet } from "./key-set.ts";
import { parseJwt } from "./parse-jwt.ts";

const encode = (value: unknown): string =>
  Buffer.from(typeof value === "string" ? value : JSON.stringify(value)).toString("base64url");
const head = encode({ alg: "EdDSA" });
const signature = encode("signature");
const withHead = (value: unknown): string => `${encode(value)}.${encode({})}.${signature}`;
const withPayload = (value: unknown): string => `${head}.${encode(value)}.${signature}`;

const tokens: readonly { readonly name: string; readonly input: string; readonly expected: string }[] = [
  {
    name: "two sections",
    input: `${head}.${encode({})}`,
    expected: "Jwt is not in the form of Header.Payload.Signature with two dots and 3 sections",
  },
  { name: "a header of other characters", input: "a*b.c.d", expected: "Jwt header is an invalid Base64url encoded" },
  { name: "a header that is no JSON", input: withHead("{"), expected: "Jwt header is an invalid JSON" },
  { name: "a header that is a list", input: withHead([]), expected: "Jwt header is an invalid JSON" },
  {
    name: "no algorithm",
    input: withHead({}),
    expected: "Jwt header [alg] field is required and must be a string",
  },
  { name: "the algorithm none", input: withHead({ alg: "none" }), expected: "Jwt header [alg] is not supported" },
  {
    name: "a key's id that is a number",
    input: withHead({ alg: "EdDSA", kid: 1 }),
    expected: "Jwt header [kid] field is not a string",
  },
  {
    name: "a payload of other characters",
    input: `${head}.a*b.${signature}`,
    expected: "Jwt payload is an invalid Base64url encoded",
  },
  { name: "a payload that is no JSON", input: withPayload("}"), expected: "Jwt payload is an invalid JSON" },
  { name: "a payload that is no UTF-8", input: `${head}._w.${signature}`, expected: "Jwt payload is an invalid JSON" },
  { name: "iss", input: withPayload({ iss: 1 }), expected: "Jwt payload [iss] field is not a string" },
  { name: "sub", input: withPayload({ sub: {} }), expected: "Jwt payload [sub] field is not a string" },
  { name: "jti", input: withPayload({ jti: null }), expected: "Jwt payload [jti] field is not a string" },
  {
    name: "aud",
    input: withPayload({ aud: ["a", 1] }),
    expected: "Jwt payload [aud] field is not a string or string list",
  },
  { name: "iat", input: withPayload({ iat: "1" }), expected: "Jwt payload [iat] field is not an integer" },
  {
    name: "iat below 0",
    input: withPayload({ iat: -1 }),
    expected: "Jwt payload [iat] field is not a positive 64 bit integer",
  },
  { name: "nbf", input: withPayload({ nbf: true }), expected: "Jwt payload [nbf] field is not an integer" },
  {
    name: "nbf above 64 bits",
    input: withPayload('{"nbf":18446744073709551616}'),
    expected: "Jwt payload [nbf] field is not a positive 64 bit integer",
  },
  { name: "exp", input: withPayload({ exp: [] }), expected: "Jwt payload [exp] field is not an integer" },
  {
    name: "exp below 0",
    input: withPayload({ exp: -5 }),
    expected: "Jwt payload [exp] field is not a positive 64 bit integer",
  },
  {
    name: "a signature of other characters",
    input: `${head}.${encode({})}.a*b`,
    expected: "Jwt signature is an invalid Base64url encoded",
  },
];

for (const { name, input, expected } of tokens) {
  test(`no token: ${name}`, () => {
    const outcome = parseJwt(input);
    assert.ok(typeof outcome === "string");
    assert.equal(jwtFailures[outcome], expected);
  });
}

test("a signature that is too short for its key", () => {
  const { publicKey } = generateKeyPairSync("ed25519");
  const keys = readKeySet(JSON.stringify({ keys: [publicKey.export({ format: "jwk" })] }));
  const jwt = parseJwt(withPayload({}));
  assert.ok(keys.ok && typeof jwt === "object");
  assert.equal(jwtFailures[keys.keys.verify(jwt)!], "Jwt ED25519 signature is wrong length");
});
