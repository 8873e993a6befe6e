// A mesh's authority in a test's own process: what signs for a workload, with the roots' file beside it.
import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import type { TestContext } from "node:test";
import {
  CertificateAuthority,
  createAuthority,
  createCsr,
  generateKey,
  privateKeyPem,
  type SpiffeId,
} from "@tulle/identity";

export const web: SpiffeId = { trustDomain: "cluster.local", namespace: "shop", serviceAccount: "web" };
/** What the test's platform hands to the workload. */
export const goodToken = "header.claims.signature";

export interface TestAuthority {
  readonly authority: CertificateAuthority;
  /** A folder of the test's own, with the two files below in it. */
  readonly folder: string;
  readonly rootsFile: string;
  readonly tokenFile: string;
  /** Runs when the test ends, the last first: what writes into the folder has ended before it goes. */
  readonly cleanUp: AsyncDisposableStack;
}

const trustDomain = "cluster.local";

export async function newAuthority(now: () => number, ttlMs?: number): Promise<CertificateAuthority> {
  const signing = await createAuthority({ trustDomain, nowMs: now() });
  const ttl = ttlMs === undefined ? {} : { defaultTtlMs: ttlMs };
  return new CertificateAuthority({ trustDomain, state: { phase: "steady", signing }, now, ...ttl });
}

export async function testAuthority(
  context: TestContext,
  options: { readonly now?: () => number; readonly ttlMs?: number } = {},
): Promise<TestAuthority> {
  const folder = await mkdtemp(path.join(tmpdir(), "tulle-identity-"));
  const cleanUp = new AsyncDisposableStack();
  cleanUp.defer(() => rm(folder, { recursive: true, force: true }));
  context.after(() => cleanUp.disposeAsync());
  const authority = await newAuthority(options.now ?? Date.now, options.ttlMs);
  const [rootsFile, tokenFile] = [path.join(folder, "root-cert.pem"), path.join(folder, "token")] as const;
  await writeFile(rootsFile, authority.trustBundlePem);
  await writeFile(tokenFile, `${goodToken}\n`);
  return { authority, folder, rootsFile, tokenFile, cleanUp };
}

/** Key and chain of a workload with the same identity, past agent and control plane. */
export async function issueTo(
  authority: CertificateAuthority,
): Promise<{ readonly keyPem: string; readonly chainPem: string }> {
  const key = await generateKey();
  const signed = authority.signWorkload({ csrPem: createCsr({ key, spiffeId: web }), identity: web });
  assert.ok(signed.ok);
  return { keyPem: privateKeyPem(key), chainPem: signed.chainPem };
}
