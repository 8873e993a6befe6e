// The key that stands for keys not fetched yet is on its curve, and is the one that its comment says how to find.
import assert from "node:assert/strict";
import { createHash, createPublicKey, ECDH } from "node:crypto";
import { test } from "node:test";
import { noKeysYet } from "./jwt-authentication.ts";

test("nobody can have made the key of no keys", () => {
  const [key] = (JSON.parse(noKeysYet) as { keys: { x: string; y: string }[] }).keys;
  const x = createHash("sha256").update("tulle: no keys yet 0").digest();
  const point = ECDH.convertKey(Buffer.concat([Buffer.of(2), x]), "prime256v1") as Buffer;
  assert.equal(key!.x, x.toString("base64url"));
  assert.equal(key!.y, point.subarray(33).toString("base64url"));
  createPublicKey({ key: key!, format: "jwk" });
});
