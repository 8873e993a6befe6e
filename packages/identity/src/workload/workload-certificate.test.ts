// A workload's bundle: only what peers would accept becomes one, and it comes back from disk as it went.
import assert from "node:assert/strict";
import { readFile, stat, writeFile } from "node:fs/promises";
import path from "node:path";
import test from "node:test";
import { generateKey } from "../keys/generate-key.ts";
import { privateKeyPem } from "../keys/private-key.ts";
import { temporaryFolder } from "../testing/openssl.ts";
import { catalog, dayMs, issueTo, newAuthority, nowMs } from "../testing/workload.ts";
import {
  checkWorkloadCertificate,
  readWorkloadCertificate,
  type WorkloadCertificateParts,
  workloadExpiry,
  writeWorkloadCertificate,
} from "./workload-certificate.ts";

const authority = await newAuthority();
const good = await issueTo(authority);
const stranger = await newAuthority();
const otherKey = privateKeyPem(await generateKey());

const bad: readonly {
  readonly name: string;
  readonly change: Partial<WorkloadCertificateParts>;
  readonly atMs?: number;
  readonly expected: RegExp;
}[] = [
  { name: "no key", change: { keyPem: "" }, expected: /private key is not readable/ },
  { name: "the key of another", change: { keyPem: otherKey }, expected: /not for the workload's key/ },
  { name: "no chain", change: { chainPem: "" }, expected: /the workload's chain: there is no certificate/ },
  { name: "no roots", change: { rootsPem: "" }, expected: /the trusted roots: there is no certificate/ },
  { name: "foreign roots", change: { rootsPem: stranger.trustBundlePem }, expected: /leads to no trusted root/ },
  { name: "an expired certificate", change: {}, atMs: nowMs + dayMs, expected: /expired at 2030-06-02T12:00:00Z/ },
  {
    name: "an authority's certificate",
    change: { chainPem: stranger.trustBundlePem },
    expected: /not for the workload's key/,
  },
];

for (const { name, change, atMs = nowMs, expected } of bad) {
  test(`no bundle from ${name}`, () => {
    const checked = checkWorkloadCertificate({ ...good, ...change }, atMs);
    assert.match(checked.ok ? "" : checked.message, expected);
  });
}

test("a bundle does not change, and knows whose it is", () => {
  assert.deepEqual(good.spiffeId, catalog);
  assert.ok(Object.isFrozen(good));
  assert.ok(Object.isFrozen(good.leaf));
});

test("a bundle comes back from disk, readable by its owner alone", async (t) => {
  const file = path.join(await temporaryFolder(t), "workload.json");
  assert.equal(await readWorkloadCertificate(file, nowMs), undefined);
  await writeWorkloadCertificate(file, good);
  assert.equal((await stat(file)).mode & 0o777, 0o600);
  const read = await readWorkloadCertificate(file, nowMs + 1000);
  assert.ok(read?.ok);
  assert.equal(read.certificate.leaf.serial, good.leaf.serial);
  assert.equal(read.certificate.obtainedAtMs, nowMs);
  const late = await readWorkloadCertificate(file, nowMs + 2 * dayMs);
  assert.equal(late?.ok, false);
});

test("warnings about a workload begin after its renewal was due, however short its life", async () => {
  const short = await issueTo(authority, { ttlMs: 20_000 });
  const levels = [0, 10_000, 14_000, 18_500, 20_000].map((afterMs) => workloadExpiry(short, nowMs + afterMs).level);
  assert.deepEqual(levels, ["good", "good", "warning", "critical", "expired"]);
});

test("a damaged file is an error, not a crash", async (t) => {
  const file = path.join(await temporaryFolder(t), "workload.json");
  await writeWorkloadCertificate(file, good);
  const text = await readFile(file, "utf8");
  for (const content of [
    "",
    "null",
    "{}",
    text.slice(0, -20),
    text.replace(/"obtainedAtMs": \d+/, '"obtainedAtMs": "now"'),
  ]) {
    await writeFile(file, content);
    const read = await readWorkloadCertificate(file, nowMs);
    assert.match(read?.ok === false ? read.message : "", /does not hold a workload's certificate/);
  }
});
