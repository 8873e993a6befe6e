// Signing keys: their succession, their two lives, their secrecy, and that other implementations agree on what they
// sign.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { test } from "node:test";
import type { TestContext } from "node:test";
import { createLocalJWKSet, decodeProtectedHeader, exportJWK, generateKeyPair, jwtVerify, SignJWT } from "jose";
import type { JSONWebKeySet } from "jose";
import { repeatedKeyPair } from "../testing/test-server.ts";
import type { Database } from "../store/database.ts";
import { openDatabase } from "../store/open.ts";
import type { SigningAlgorithm } from "./jwt.ts";
import { KeyRing } from "./key-ring.ts";
import { keyState, listKeys } from "./key-store.ts";
import type { KeyPolicy } from "./succession.ts";
import { advanceKeys, maxRetiredKeys, stepsToRotate } from "./succession.ts";

const day = 86_400_000;
const policy: KeyPolicy = {
  rotationMs: 30 * day,
  publishAheadMs: day,
  tokenLifeMs: 360_000,
  hintLifeMs: 7 * day,
};

interface Store {
  readonly database: Database;
  readonly clock: { nowMs: number };
  readonly encryptionKey: Buffer;
  readonly ring: (own?: Partial<KeyPolicy>) => KeyRing;
  readonly rotate: () => Promise<boolean>;
  readonly states: () => Promise<string[]>;
}

async function store(t: TestContext): Promise<Store> {
  const dataDir = mkdtempSync(path.join(tmpdir(), "tulle-auth-"));
  const clock = { nowMs: 1_800_000_000_000 };
  const database = await openDatabase({ dataDir, databaseUrl: undefined }, { nowMs: () => clock.nowMs });
  t.after(async () => {
    await database.close();
    rmSync(dataDir, { recursive: true });
  });
  const making = { encryptionKey: randomBytes(32), makeKeyPair: repeatedKeyPair };
  return {
    database,
    clock,
    encryptionKey: making.encryptionKey,
    ring: (own = {}) => new KeyRing(database, { policy: { ...policy, ...own }, ...making }),
    rotate: () => advanceKeys(database, stepsToRotate, making),
    states: async () => {
      const keys = await database.read((reader) => listKeys(reader));
      return keys.map((key) => `${key.algorithm} ${keyState(key, clock.nowMs)}`).sort();
    },
  };
}

function publishedBy(ring: KeyRing): string[] {
  return (JSON.parse(ring.jwks) as { keys: { kid: string }[] }).keys.map((key) => key.kid);
}

function signerOf(ring: KeyRing, algorithm: SigningAlgorithm): string {
  return decodeProtectedHeader(ring.sign(algorithm, "JWT", { sub: "x" })).kid!;
}

const settled = ["ES256 active", "ES256 next", "RS256 active", "RS256 next"];

for (const algorithm of ["ES256", "RS256"] as const) {
  test(`${algorithm}: jose verifies what we sign, and we verify only what we signed`, async (t) => {
    const ring = (await store(t)).ring();
    await ring.refresh();
    const token = ring.sign(algorithm, "at+jwt", { iss: "https://a.example", sub: "ü" });
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
    const otherKid = signerOf(ring, algorithm === "ES256" ? "RS256" : "ES256");
    const confused = Buffer.from(JSON.stringify({ alg: algorithm, kid: otherKid })).toString("base64url");
    for (const forged of [
      stranger,
      `${none}.${body}.`,
      `${none}.${body}.${signature}`,
      `${confused}.${body}.${signature}`,
      `${header}.${body}x.${signature}`,
      `${token}x`,
      hmac,
      "",
      "a.b.c",
    ]) {
      assert.equal(ring.verify(forged), undefined, forged.slice(0, 40));
      assert.equal(ring.verifyHint(forged), undefined, forged.slice(0, 40));
    }
  });
}

test("both algorithms sign from the first start on, and their next keys are published long before they do", async (t) => {
  const { ring: makeRing, states, clock } = await store(t);
  const ring = makeRing();
  await ring.refresh();
  assert.deepEqual(ring.algorithms, ["RS256", "ES256"]);
  await ring.refresh();
  assert.deepEqual(await states(), settled);
  assert.equal(publishedBy(ring).length, 4);
  assert.doesNotMatch(ring.jwks, /"(d|p|q)":/);
  const before = { RS256: signerOf(ring, "RS256"), ES256: signerOf(ring, "ES256") };
  const known = publishedBy(ring);
  clock.nowMs += 30 * day - 1;
  await ring.refresh();
  assert.deepEqual(await states(), settled, "not due yet");
  clock.nowMs += 1;
  await ring.refresh();
  for (const algorithm of ["RS256", "ES256"] as const) {
    assert.notEqual(signerOf(ring, algorithm), before[algorithm]);
    assert.ok(known.includes(signerOf(ring, algorithm)), "the new signer was published before");
  }
});

test("a retired key is published until its tokens have expired, and known for hints as long as sessions", async (t) => {
  const { database, ring: makeRing, states, clock } = await store(t);
  const ring = makeRing();
  await ring.refresh();
  await ring.refresh();
  const old = ring.sign("RS256", "JWT", { n: 1 });
  const { kid } = decodeProtectedHeader(old);
  clock.nowMs += 30 * day;
  await ring.refresh();
  assert.deepEqual(await states(), [...settled, "ES256 published", "RS256 published"].sort());
  assert.ok(publishedBy(ring).includes(kid!));
  assert.ok(ring.verify(old));
  const retired = await database.read((reader) =>
    reader.all("SELECT private_sealed FROM signing_keys WHERE retired_at IS NOT NULL"),
  );
  assert.deepEqual(
    retired.map((row) => row["private_sealed"]),
    ["", ""],
    "what signs no more can sign no more",
  );
  clock.nowMs += 360_001;
  await ring.refresh();
  assert.deepEqual(await states(), [...settled, "ES256 hints", "RS256 hints"].sort());
  assert.ok(!publishedBy(ring).includes(kid!));
  assert.equal(ring.verify(old), undefined, "no access token is taken by it any more");
  assert.ok(ring.verifyHint(old));
  const restarted = makeRing();
  await restarted.refresh();
  assert.ok(restarted.verifyHint(old), "after a restart too");
  clock.nowMs += 7 * day;
  await ring.refresh();
  assert.deepEqual(await states(), settled);
  assert.equal(ring.verifyHint(old), undefined);
});

test("an algorithm that is new to a store is published first, and the other one signs for it until then", async (t) => {
  const { database, ring: makeRing, clock } = await store(t);
  const ring = makeRing();
  await ring.refresh();
  await database.transaction((transaction) => transaction.run("DELETE FROM signing_keys WHERE algorithm = 'RS256'"));
  await ring.refresh();
  assert.deepEqual(ring.algorithms, ["ES256"]);
  assert.equal(signerOf(ring, "RS256"), signerOf(ring, "ES256"));
  assert.equal(publishedBy(ring).length, 3);
  clock.nowMs += day;
  await ring.refresh();
  assert.deepEqual(ring.algorithms, ["RS256", "ES256"]);
  assert.notEqual(signerOf(ring, "RS256"), signerOf(ring, "ES256"));
});

test("rotation by hand needs no policy: it keeps each algorithm, and the lives that servers gave the keys", async (t) => {
  const { database, ring: makeRing, states, clock, rotate } = await store(t);
  const ring = makeRing({ tokenLifeMs: 7_200_000, hintLifeMs: 60 * day });
  await ring.refresh();
  const unpublished = { RS256: signerOf(ring, "RS256"), ES256: signerOf(ring, "ES256") };
  assert.equal(await rotate(), true, "also before there is a next key");
  await ring.refresh();
  const next = publishedBy(ring);
  await rotate();
  await ring.refresh();
  assert.deepEqual(
    await states(),
    [...settled, "ES256 published", "ES256 published", "RS256 published", "RS256 published"].sort(),
  );
  for (const algorithm of ["RS256", "ES256"] as const) {
    assert.notEqual(signerOf(ring, algorithm), unpublished[algorithm]);
    assert.ok(next.includes(signerOf(ring, algorithm)));
  }
  const lives = await database.read((reader) => reader.all("SELECT DISTINCT token_life, hint_life FROM signing_keys"));
  assert.deepEqual(
    lives.map((row) => ({ ...row })),
    [{ token_life: 7_200_000, hint_life: 60 * day }],
  );
  clock.nowMs += 7_200_000;
  await ring.refresh();
  assert.equal(publishedBy(ring).length, 8, "published as long as the server's tokens live, not the command's");
});

test("two processes with different lives: a key lives as long as the longer one needs", async (t) => {
  const { database, ring: makeRing } = await store(t);
  const long = makeRing({ tokenLifeMs: 3_600_000 });
  const short = makeRing({ hintLifeMs: 30 * day });
  await long.refresh();
  await short.refresh();
  await long.refresh();
  await short.refresh();
  const keys = await database.read((reader) => listKeys(reader));
  for (const key of keys) {
    assert.equal(key.tokenLifeMs, 3_600_000);
    assert.equal(key.hintLifeMs, 30 * day);
  }
});

test("rotating by hand without end fills neither the key set nor the store", async (t) => {
  const { database, ring: makeRing, rotate, clock } = await store(t);
  const ring = makeRing();
  await ring.refresh();
  for (let count = 0; count < maxRetiredKeys + 5; count += 1) {
    clock.nowMs += 1;
    await rotate();
  }
  await ring.refresh();
  const retired = (await database.read((reader) => listKeys(reader))).filter((key) => key.retiredAtMs !== undefined);
  assert.equal(retired.length, 2 * maxRetiredKeys);
});

test("several processes agree on one succession, and a wrong sealing key is said", async (t) => {
  const { database, ring: makeRing, states, clock, rotate } = await store(t);
  const rings = [1, 2, 3].map(() => makeRing());
  await Promise.all(rings.map((ring) => ring.refresh()));
  await Promise.all(rings.map((ring) => ring.refresh()));
  await Promise.all(rings.map((ring) => ring.refresh()));
  assert.equal(new Set(rings.map((ring) => ring.jwks)).size, 1);
  assert.deepEqual(await states(), settled);
  clock.nowMs += 30 * day;
  await Promise.all([...rings.map((ring) => ring.refresh()), rotate()]);
  await Promise.all(rings.map((ring) => ring.refresh()));
  assert.equal(new Set(rings.map((ring) => ring.jwks)).size, 1);
  assert.deepEqual(
    (await states()).filter((state) => !state.endsWith("published")),
    settled,
  );
  const stranger = new KeyRing(database, { policy, encryptionKey: randomBytes(32), makeKeyPair: repeatedKeyPair });
  await assert.rejects(stranger.refresh(), /cannot be opened/);
});
