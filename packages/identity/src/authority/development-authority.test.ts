// The development authority as OpenSSL sees it: a browser's verifier believes it for localhost, and for nothing else.
import assert from "node:assert/strict";
import { test } from "node:test";
import { generateKey } from "../keys/generate-key.ts";
import { openssl } from "../testing/openssl.ts";
import {
  createDevelopmentAuthority,
  developmentAuthorityText,
  issueDevelopmentCertificate,
  readDevelopmentAuthority,
} from "./development-authority.ts";
import { issueLeaf } from "./sign-workload.ts";

const nowMs = Date.now();

test("OpenSSL believes it for localhost", async (t) => {
  const { run, file } = await openssl(t);
  const authority = await createDevelopmentAuthority("me@laptop", nowMs);
  const { chainPem, keyPem, notAfterMs } = await issueDevelopmentCertificate(authority, nowMs);
  const roots = await file("roots.pem", authority.certificate.pem);
  const leaf = await file("leaf.pem", chainPem);
  await file("key.pem", keyPem);
  const purposes = ["-purpose", "sslserver", "-x509_strict"];
  assert.match(await run("verify", "-CAfile", roots, ...purposes, "-verify_hostname", "localhost", leaf), /OK/);
  assert.match(await run("verify", "-CAfile", roots, ...purposes, "-verify_ip", "127.0.0.1", leaf), /OK/);
  assert.match(await run("verify", "-CAfile", roots, ...purposes, "-verify_ip", "::1", leaf), /OK/);
  assert.equal(notAfterMs, Math.floor((nowMs + 90 * 24 * 3_600_000) / 1000) * 1000);
});

test("and for nothing else", async (t) => {
  const { run, file } = await openssl(t);
  const { certificate, key } = await createDevelopmentAuthority("me@laptop", nowMs);
  const roots = await file("roots.pem", certificate.pem);
  for (const name of [
    { type: "dns", value: "bank.example" },
    { type: "ip", value: "10.0.0.1" },
  ] as const) {
    const material = { certificate, key, chain: [], roots: [certificate] };
    const publicKey = await generateKey("P-256");
    const issued = issueLeaf(material, { publicKey, names: [name], commonName: "x", nowMs, ttlMs: 3_600_000 });
    const leaf = await file("leaf.pem", issued.chainPem);
    await assert.rejects(run("verify", "-CAfile", roots, leaf), /permitted subtree violation/);
  }
});

test("it is read again as it was written", async () => {
  const authority = await createDevelopmentAuthority("me@laptop", nowMs);
  const text = developmentAuthorityText(authority);
  const read = readDevelopmentAuthority(text);
  assert.equal(read?.certificate.serial, authority.certificate.serial);
  assert.ok(read?.key.equals(authority.key));
  const other = developmentAuthorityText(await createDevelopmentAuthority("me@laptop", nowMs));
  const mixed = authority.certificate.pem + other.slice(other.indexOf("-----BEGIN PRIVATE"));
  for (const broken of ["", text.slice(0, 100), text.slice(0, -100), mixed]) {
    assert.equal(readDevelopmentAuthority(broken), undefined);
  }
});
