// Workload tokens: good ones, and each of the ways in which one is not ours, not for us or not of now.
import assert from "node:assert/strict";
import { createHmac, generateKeyPairSync, sign } from "node:crypto";
import { stat, writeFile } from "node:fs/promises";
import path from "node:path";
import test from "node:test";
import { decodeJwt, decodeProtectedHeader } from "jose";
import { privateKeyPem } from "../keys/private-key.ts";
import { temporaryFolder } from "../testing/openssl.ts";
import { dayMs, hourMs, nowMs } from "../testing/workload.ts";
import { issueWorkloadToken, type WorkloadTokenRequest } from "./issue-workload-token.ts";
import { verifyWorkloadToken, type WorkloadTokenVerification } from "./verify-workload-token.ts";
import { createWorkloadTokenKey, openWorkloadTokenKey, type WorkloadTokenSigningKey } from "./workload-token-key.ts";
import { authorityAudience } from "./workload-token.ts";

const [key, otherKey] = await Promise.all([createWorkloadTokenKey(), createWorkloadTokenKey()]);
const identity = { namespace: "shop", serviceAccount: "catalog", pod: { name: "catalog-1", uid: "0b9d" } };
const request: WorkloadTokenRequest = { identity, issuer: "https://tulle.local", audience: authorityAudience, nowMs };
const verification: WorkloadTokenVerification = {
  keys: [key],
  issuer: "https://tulle.local",
  audience: authorityAudience,
  nowMs,
};
const good = await issueWorkloadToken(key, request);

test("a token says what Kubernetes' own say", () => {
  assert.deepEqual(decodeProtectedHeader(good), { alg: "ES256", kid: key.id, typ: "JWT" });
  const { jti, ...claims } = decodeJwt(good);
  assert.match(jti!, /^[0-9a-f-]{36}$/);
  assert.deepEqual(claims, {
    iss: "https://tulle.local",
    sub: "system:serviceaccount:shop:catalog",
    aud: "istio-ca",
    iat: nowMs / 1000,
    nbf: nowMs / 1000,
    exp: nowMs / 1000 + 3600,
    "kubernetes.io": {
      namespace: "shop",
      pod: { name: "catalog-1", uid: "0b9d" },
      serviceaccount: { name: "catalog" },
    },
  });
});

test("a good token gives the identity and its end", async () => {
  const result = await verifyWorkloadToken(good, verification);
  assert.deepEqual(result, { ok: true, identity, expiresAtMs: nowMs + hourMs });
  assert.ok((await verifyWorkloadToken(good, { ...verification, keys: [otherKey, key] })).ok);
});

/** A token of any header and claims, signed as told. */
function forged(header: object, change: object, signer: (input: string) => Buffer): string {
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url");
  const input = `${part({ alg: "ES256", kid: key.id, typ: "JWT", ...header })}.${part({ ...decodeJwt(good), ...change })}`;
  return `${input}.${signer(input).toString("base64url")}`;
}

const es256 = (by: WorkloadTokenSigningKey) => (input: string) =>
  sign("sha256", Buffer.from(input), { key: by.privateKey, dsaEncoding: "ieee-p1363" });
const publicPem = key.publicKey.export({ type: "spki", format: "pem" });
const rsa = generateKeyPairSync("rsa", { modulusLength: 2048 }).privateKey;
const [head, body, signature] = good.split(".");
const claims = decodeJwt(good)["kubernetes.io"] as object;

const refused: readonly {
  readonly name: string;
  readonly token: string;
  readonly with?: Partial<WorkloadTokenVerification>;
  readonly expected: string;
}[] = [
  { name: "nothing", token: "", expected: "malformed" },
  { name: "two parts", token: `${head}.${body}`, expected: "malformed" },
  { name: "more text than a token has", token: good + "x".repeat(8192), expected: "malformed" },
  { name: "alg none", token: forged({ alg: "none" }, {}, () => Buffer.alloc(0)), expected: "wrong-algorithm" },
  {
    name: "HS256 by the public key",
    token: forged({ alg: "HS256" }, {}, (input) => createHmac("sha256", publicPem).update(input).digest()),
    expected: "wrong-algorithm",
  },
  {
    name: "RS256",
    token: forged({ alg: "RS256" }, {}, (input) => sign("sha256", Buffer.from(input), rsa)),
    expected: "wrong-algorithm",
  },
  { name: "another key under our kid", token: forged({}, {}, es256(otherKey)), expected: "bad-signature" },
  { name: "an unknown kid", token: forged({ kid: "x" }, {}, es256(key)), expected: "unknown-key" },
  { name: "no kid", token: forged({ kid: undefined }, {}, es256(key)), expected: "unknown-key" },
  {
    name: "a key that it brings along",
    token: forged({ kid: "x", jwk: otherKey.publicKey.export({ format: "jwk" }) }, {}, es256(otherKey)),
    expected: "unknown-key",
  },
  {
    name: "a changed claim",
    token: `${head}.${Buffer.from(JSON.stringify({ ...decodeJwt(good), sub: "x" })).toString("base64url")}.${signature}`,
    expected: "bad-signature",
  },
  { name: "a critical header", token: forged({ crit: ["x"], x: 1 }, {}, es256(key)), expected: "malformed" },
  { name: "an access token's typ", token: forged({ typ: "at+jwt" }, {}, es256(key)), expected: "wrong-claims" },
  { name: "another issuer", token: good, with: { issuer: "https://else" }, expected: "wrong-issuer" },
  { name: "another audience", token: good, with: { audience: "vault" }, expected: "wrong-audience" },
  {
    name: "several audiences",
    token: forged({}, { aud: ["istio-ca", "vault"] }, es256(key)),
    expected: "wrong-audience",
  },
  { name: "no audience", token: forged({}, { aud: undefined }, es256(key)), expected: "wrong-audience" },
  { name: "its end", token: good, with: { nowMs: nowMs + hourMs }, expected: "expired" },
  { name: "a time before it", token: good, with: { nowMs: nowMs - 1000 }, expected: "not-yet-valid" },
  { name: "no end", token: forged({}, { exp: undefined }, es256(key)), expected: "wrong-claims" },
  {
    name: "a life of two days",
    token: forged({}, { exp: nowMs / 1000 + (2 * dayMs) / 1000 }, es256(key)),
    expected: "wrong-claims",
  },
  {
    name: "a subject of another",
    token: forged({}, { sub: "system:serviceaccount:shop:payments" }, es256(key)),
    expected: "wrong-claims",
  },
  {
    name: "no pod",
    token: forged({}, { "kubernetes.io": { ...claims, pod: undefined } }, es256(key)),
    expected: "wrong-claims",
  },
  { name: "no claims", token: forged({}, { "kubernetes.io": undefined }, es256(key)), expected: "wrong-claims" },
  { name: "claims that are null", token: forged({}, { "kubernetes.io": null }, es256(key)), expected: "wrong-claims" },
  {
    name: "a name with a slash",
    token: forged(
      {},
      { sub: "system:serviceaccount:shop:a/b", "kubernetes.io": { ...claims, serviceaccount: { name: "a/b" } } },
      es256(key),
    ),
    expected: "wrong-claims",
  },
];

for (const { name, token, with: change, expected } of refused) {
  test(`a token refused for ${name}: ${expected}`, async () => {
    const result = await verifyWorkloadToken(token, { ...verification, ...change });
    assert.equal(result.ok ? "good" : result.code, expected);
    if (!result.ok && token !== "") assert.ok(!result.message.includes(token.slice(0, 20)));
  });
}

test("between two clocks that differ, the allowed difference counts", async () => {
  const late = { ...verification, nowMs: nowMs + hourMs + 5000 };
  assert.equal((await verifyWorkloadToken(good, late)).ok, false);
  assert.ok((await verifyWorkloadToken(good, { ...late, clockSkewMs: 10_000 })).ok);
});

test("no token is made for names that would speak for others", async () => {
  for (const serviceAccount of ["a:b", "a/b", "", "A"]) {
    await assert.rejects(issueWorkloadToken(key, { ...request, identity: { ...identity, serviceAccount } }), TypeError);
  }
});

test("no token is made that would be refused for its life", async () => {
  for (const lifetimeMs of [0, -1, Number.NaN, dayMs + 1]) {
    await assert.rejects(issueWorkloadToken(key, { ...request, lifetimeMs }), TypeError);
  }
  const longest = await issueWorkloadToken(key, { ...request, lifetimeMs: dayMs });
  assert.ok((await verifyWorkloadToken(longest, verification)).ok);
});

test("the key is made once, and is its owner's alone", async (t) => {
  const file = path.join(await temporaryFolder(t), "state", "token-key.pem");
  const first = await openWorkloadTokenKey(file);
  const again = await openWorkloadTokenKey(file);
  assert.ok(first.ok && again.ok);
  assert.equal(again.key.id, first.key.id);
  assert.equal((await stat(file)).mode & 0o777, 0o600);
  const token = await issueWorkloadToken(first.key, request);
  assert.ok((await verifyWorkloadToken(token, { ...verification, keys: [again.key] })).ok);
});

test("a key file that holds something else is an error", async (t) => {
  const file = path.join(await temporaryFolder(t), "token-key.pem");
  for (const content of ["hello", privateKeyPem(rsa)]) {
    await writeFile(file, content);
    const opened = await openWorkloadTokenKey(file);
    assert.match(opened.ok ? "" : opened.message, /does not hold a private P-256 key/);
  }
});
