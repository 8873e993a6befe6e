// Signing keys: their succession, their secrecy, and that other implementations agree on what they sign.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { test } from "node:test";
import type { TestContext } from "node:test";
import { createLocalJWKSet, exportJWK, generateKeyPair, jwtVerify, SignJWT } from "jose";
import type { JSONWebKeySet } from "jose";
import type { Database } from "../store/database.ts";
import { openDatabase } from "../store/open.ts";
import { KeyRing } from "./key-ring.ts";
import type { KeyPolicy } from "./key-store.ts";
import { listKeys } from "./key-store.ts";

const day = 86_400_000;
const policy: KeyPolicy = { algorithm: "ES256", rotationMs: 30 * day, publishAheadMs: day, keepRetiredMs: 360_000 };

async function store(t: TestContext): Promise<{ database: Database; clock: { nowMs: number } }> {
  const dataDir = mkdtempSync(path.join(tmpdir(), "tulle-auth-"));
  const clock = { nowMs: 1_800_000_000_000 };
  const database = await openDatabase({ dataDir, databaseUrl: undefined }, { nowMs: () => clock.nowMs });
  t.after(async () => {
    await database.close();
    rmSync(dataDir, { recursive: true });
  });
  return { database, clock };
}

async function states(database: Database): Promise<string[]> {
  const keys = await database.read((reader) => listKeys(reader));
  return keys.map((key) =>
    key.retiredAtMs !== undefined ? "retired" : key.activatedAtMs === undefined ? "next" : "active",
  );
}

for (const algorithm of ["ES256", "RS256"] as const) {
  test(`${algorithm}: jose verifies what we sign, and we verify only what we signed`, async (t) => {
    const { database } = await store(t);
    const ring = new KeyRing(database, { ...policy, algorithm }, randomBytes(32));
    await ring.refresh();
    const token = ring.sign("at+jwt", { iss: "https://a.example", sub: "ü" });
    const keys = createLocalJWKSet(JSON.parse(ring.jwks) as JSONWebKeySet);
    const { payload, protectedHeader } = await jwtVerify(token, keys, { typ: "at+jwt", issuer: "https://a.example" });
    assert.equal(payload.sub, "ü");
    assert.equal(protectedHeader.alg, algorithm);
    assert.deepEqual(ring.verify(token)?.claims, payload);
    assert.deepEqual(ring.verify(token)?.claims, payload, "the second time too");
    const { privateKey, publicKey } = await generateKeyPair(algorithm);
    const stranger = await new SignJWT({ sub: "ü" })
      .setProtectedHeader({ alg: algorithm, kid: protectedHeader.kid! })
      .sign(privateKey);
    const [header, body, signature] = token.split(".") as [string, string, string];
    const none = Buffer.from(JSON.stringify({ alg: "none", kid: protectedHeader.kid })).toString("base64url");
    const publicPem = Buffer.from(JSON.stringify(await exportJWK(publicKey)));
    const hmac = await new SignJWT({ sub: "ü" })
      .setProtectedHeader({ alg: "HS256", kid: protectedHeader.kid! })
      .sign(publicPem);
    for (const forged of [
      stranger,
      `${none}.${body}.`,
      `${none}.${body}.${signature}`,
      `${header}.${body}x.${signature}`,
      `${token}x`,
      hmac,
      "",
      "a.b.c",
    ]) {
      assert.equal(ring.verify(forged), undefined, forged.slice(0, 40));
    }
  });
}

test("the next key is published long before it signs, and an old one until its tokens have expired", async (t) => {
  const { database, clock } = await store(t);
  const ring = new KeyRing(database, policy, randomBytes(32));
  await ring.refresh();
  assert.deepEqual((await states(database)).sort(), ["active", "next"]);
  const published = (): number => (JSON.parse(ring.jwks) as { keys: unknown[] }).keys.length;
  assert.equal(published(), 2);
  assert.doesNotMatch(ring.jwks, /"d":/);
  const old = ring.sign("JWT", { n: 1 });
  clock.nowMs += 30 * day - 1;
  await ring.refresh();
  assert.equal(published(), 2, "not due yet");
  clock.nowMs += 1;
  await ring.refresh();
  assert.deepEqual((await states(database)).sort(), ["active", "next", "retired"]);
  assert.equal(published(), 3);
  assert.ok(ring.verify(old));
  clock.nowMs += 360_001;
  await ring.refresh();
  assert.equal(published(), 2);
  assert.equal(ring.verify(old), undefined);
});

test("a rotation by hand, and a change of algorithm, go by way of the published next key", async (t) => {
  const { database, clock } = await store(t);
  const sealing = randomBytes(32);
  const ring = new KeyRing(database, policy, sealing);
  await ring.refresh();
  const [, next] = (JSON.parse(ring.jwks) as { keys: { kid: string }[] }).keys.map((key) => key.kid);
  await ring.refresh({ force: true });
  const kid = (token: string): string =>
    (JSON.parse(Buffer.from(token.split(".")[0]!, "base64url").toString()) as { kid: string }).kid;
  const signer = kid(ring.sign("JWT", {}));
  assert.ok((JSON.parse(ring.jwks) as { keys: { kid: string }[] }).keys.some((key) => key.kid === signer));
  assert.ok(next !== undefined);
  const other = new KeyRing(database, { ...policy, algorithm: "RS256" }, sealing);
  await other.refresh();
  assert.deepEqual([...other.algorithms].sort(), ["ES256", "RS256"]);
  assert.equal(kid(other.sign("JWT", {})), signer, "the RS256 key is published first");
  clock.nowMs += day;
  await other.refresh();
  assert.notEqual(kid(other.sign("JWT", {})), signer);
});

test("several processes agree on one succession, and a wrong sealing key is said", async (t) => {
  const { database } = await store(t);
  const sealing = randomBytes(32);
  const rings = [1, 2, 3].map(() => new KeyRing(database, policy, sealing));
  await Promise.all(rings.map((ring) => ring.refresh()));
  await Promise.all(rings.map((ring) => ring.refresh()));
  assert.equal(new Set(rings.map((ring) => ring.jwks)).size, 1);
  assert.deepEqual((await states(database)).sort(), ["active", "next"]);
  await assert.rejects(new KeyRing(database, policy, randomBytes(32)).refresh(), /cannot be opened/);
});
