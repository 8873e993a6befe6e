// The tokens of pods: whose they are, who may read them, that they are rewritten, and that they go with their pod.
import assert from "node:assert/strict";
import { readFile, rm, stat, writeFile } from "node:fs/promises";
import path from "node:path";
import { test } from "node:test";
import {
  authorityAudience,
  localTokenIssuer,
  openWorkloadTokenKey,
  verifyWorkloadToken,
  workloadTokenKeyFile,
} from "@tulle/identity/workload-token";
import { waitUntil } from "../process/wait-until.ts";
import { WorkloadTokens } from "./workload-tokens.ts";
import { temporaryFolder } from "../../../../tests/tools/temporary-folder.ts";

const claims = { namespace: "shop", serviceAccount: "web", pod: { name: "web-1", uid: "u-1" } };

test("a token says who the pod is, to the authority alone, and only its owner may read it", async () => {
  const folder = temporaryFolder("tulle-tokens-");
  const tokens = new WorkloadTokens({ stateFolder: folder, onTrouble: assert.fail });
  const file = path.join(folder, "pods", "web-1", "token");
  await tokens.begin(claims, file);
  tokens.close();
  for (const secret of [file, path.join(folder, workloadTokenKeyFile)]) {
    assert.equal((await stat(secret)).mode & 0o777, 0o600, secret);
  }
  const opened = await openWorkloadTokenKey(path.join(folder, workloadTokenKeyFile));
  assert.ok(opened.ok);
  const rules = { keys: [opened.key], issuer: localTokenIssuer, nowMs: Date.now() };
  const token = (await readFile(file, "utf8")).trim();
  const verified = await verifyWorkloadToken(token, { ...rules, audience: authorityAudience });
  assert.ok(verified.ok);
  assert.deepEqual(verified.identity, claims);
  assert.equal((await verifyWorkloadToken(token, { ...rules, audience: "somebody-else" })).ok, false);
});

test("a token is rewritten until its pod has gone", async () => {
  const folder = temporaryFolder("tulle-tokens-");
  const tokens = new WorkloadTokens({ stateFolder: folder, onTrouble: assert.fail, rewriteAfterMs: 10 });
  const file = path.join(folder, "pods", "web-1", "token");
  await tokens.begin(claims, file);
  const first = await readFile(file, "utf8");
  await waitUntil(async () => (await readFile(file, "utf8")) !== first, {
    timeoutMs: 60_000,
    what: () => "a new token",
  });
  await tokens.end(file);
  await rm(path.dirname(file), { recursive: true });
  await assert.rejects(stat(file), { code: "ENOENT" });
});

test("who ends a token that is being written waits until it is: its folder goes as a whole then", async () => {
  const folder = temporaryFolder("tulle-tokens-");
  const tokens = new WorkloadTokens({ stateFolder: folder, onTrouble: assert.fail, rewriteAfterMs: 1 });
  const [begun, goOn] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const file = path.join(folder, "token");
  const done: string[] = [];
  let writes = 0;
  await tokens.begin(claims, file, async () => {
    writes += 1;
    if (writes === 1) return;
    begun.resolve();
    await goOn.promise;
    done.push("written");
  });
  await begun.promise;
  const ended = tokens.end(file).then(() => done.push("ended"));
  goOn.resolve();
  await ended;
  assert.deepEqual([done, writes], [["written", "ended"], 2]);
});

for (const [name, jumpMs] of [
  ["a machine that slept for two hours", 7_200_000],
  ["a clock that was set back", -7_200_000],
] as const) {
  test(`${name}: the token is rewritten as soon as somebody looks`, async (context) => {
    const folder = temporaryFolder("tulle-tokens-");
    let nowMs = Date.now();
    const tokens = new WorkloadTokens({
      stateFolder: folder,
      onTrouble: assert.fail,
      now: () => nowMs,
      longestSleepMs: 5,
    });
    context.after(() => tokens.close());
    const file = path.join(folder, "pods", "web-1", "token");
    await tokens.begin(claims, file);
    const first = await readFile(file, "utf8");
    nowMs += jumpMs;
    await waitUntil(async () => (await readFile(file, "utf8")) !== first, {
      timeoutMs: 60_000,
      what: () => "a new token",
    });
  });
}

test("a token that cannot be written is told of, and written once it can be", async (context) => {
  const folder = temporaryFolder("tulle-tokens-");
  const troubles: string[] = [];
  const tokens = new WorkloadTokens({
    stateFolder: folder,
    onTrouble: (message) => troubles.push(message),
    rewriteAfterMs: 10,
  });
  context.after(() => tokens.close());
  const notAFolder = path.join(folder, "pods");
  await writeFile(notAFolder, "");
  const file = path.join(notAFolder, "token");
  await tokens.begin(claims, file);
  await tokens.begin(claims, path.join(notAFolder, "another"));
  assert.equal(troubles.length, 1, "told once");
  assert.match(troubles[0]!, /the token of pod web-1 cannot be written/);
  await rm(notAFolder);
  await waitUntil(() => stat(file).then(() => true), { timeoutMs: 60_000, what: () => "the token" });
  tokens.close();
});

test("a key that cannot be read is no reason for another one", async () => {
  const folder = temporaryFolder("tulle-tokens-");
  await writeFile(path.join(folder, workloadTokenKeyFile), "no key");
  const tokens = new WorkloadTokens({ stateFolder: folder, onTrouble: assert.fail });
  await assert.rejects(tokens.open(), /does not hold a private P-256 key/);
});
