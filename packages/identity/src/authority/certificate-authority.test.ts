// What the authority issues, and to whom: compared with OpenSSL's reading of the same bytes.
import assert from "node:assert/strict";
import test from "node:test";
import { createCsr } from "../csr/create-csr.ts";
import { generateKey } from "../keys/generate-key.ts";
import type { KeyAlgorithm } from "../keys/key-algorithm.ts";
import { openssl } from "../testing/openssl.ts";
import {
  catalog,
  certificatesOf,
  dayMs,
  hourMs,
  issueTo,
  newAuthority,
  nowMs,
  plannedLeaf,
} from "../testing/workload.ts";
import { basicConstraints, keyUsage } from "../x509/extensions.ts";
import { CertificateAuthority } from "./certificate-authority.ts";
import { createAuthority } from "./create-authority.ts";

const attime = ["-attime", String(nowMs / 1000), "-x509_strict"];

const kinds: readonly { readonly algorithm: KeyAlgorithm; readonly signature: string; readonly usage: string }[] = [
  { algorithm: "P-256", signature: "ecdsa-with-SHA256", usage: "Digital Signature" },
  { algorithm: "P-384", signature: "ecdsa-with-SHA384", usage: "Digital Signature" },
  { algorithm: "RSA-2048", signature: "sha256WithRSAEncryption", usage: "Digital Signature, Key Encipherment" },
  { algorithm: "Ed25519", signature: "ED25519", usage: "Digital Signature" },
];

for (const { algorithm, signature, usage } of kinds) {
  for (const signer of ["intermediate", "root"] as const) {
    test(`OpenSSL verifies a workload of an authority whose ${signer} signs with ${algorithm}`, async (t) => {
      const ssl = await openssl(t);
      const authority = await newAuthority({ algorithm, signer });
      const workload = await issueTo(authority, { algorithm });
      const roots = await ssl.file("roots.pem", authority.trustBundlePem);
      const chain = await ssl.file("chain.pem", workload.chainPem);
      for (const purpose of ["sslclient", "sslserver"]) {
        const verified = await ssl.run(
          "verify",
          ...attime,
          "-purpose",
          purpose,
          "-CAfile",
          roots,
          "-untrusted",
          chain,
          chain,
        );
        assert.match(verified, /: OK\n$/);
      }
      const text = await ssl.run("x509", "-in", chain, "-noout", "-text");
      assert.match(text, new RegExp(`Signature Algorithm: ${signature}\n`));
      assert.match(text, /Version: 3 \(0x2\)/);
      assert.match(text, /Subject: *\n/);
      assert.match(text, /Not Before: Jun {2}1 11:58:00 2030 GMT\n\s+Not After : Jun {2}2 12:00:00 2030 GMT/);
      assert.match(text, new RegExp(`X509v3 Key Usage: critical\n\\s+${usage}\n`));
      assert.match(
        text,
        /X509v3 Extended Key Usage: *\n\s+TLS Web Server Authentication, TLS Web Client Authentication\n/,
      );
      assert.match(text, /X509v3 Basic Constraints: critical\n\s+CA:FALSE\n/);
      const names =
        /X509v3 Subject Alternative Name: critical\n\s+URI:spiffe:\/\/cluster\.local\/ns\/shop\/sa\/catalog\n/;
      assert.match(text, names);
      const [, own] = /Authority Key Identifier: *\n\s+([0-9A-F:]+)\n/.exec(text)!;
      assert.equal(
        own!.replaceAll(":", ""),
        authority.state.signing.certificate.subjectKeyIdentifier!.toString("hex").toUpperCase(),
      );
      assert.equal(certificatesOf(workload.chainPem).length, signer === "root" ? 1 : 2);
    });
  }
}

test("root and intermediate are authorities of ten years with the right reach", async (t) => {
  const ssl = await openssl(t);
  const authority = await newAuthority();
  const { signing } = authority.state;
  const [root] = signing.roots;
  for (const { certificate, pathLength } of [
    { certificate: root!, pathLength: 1 },
    { certificate: signing.certificate, pathLength: 0 },
  ]) {
    const text = await ssl.run("x509", "-in", await ssl.file("ca.pem", certificate.pem), "-noout", "-text");
    assert.match(text, new RegExp(`X509v3 Basic Constraints: critical\n\\s+CA:TRUE, pathlen:${pathLength}\n`));
    assert.match(text, /X509v3 Key Usage: critical\n\s+Certificate Sign, CRL Sign\n/);
    assert.match(text, /X509v3 Subject Key Identifier: *\n/);
    assert.match(text, /Not After : May 29 12:00:00 2040 GMT/);
    assert.match(
      text,
      new RegExp(
        `Subject: O = cluster\\.local, CN = Tulle ${pathLength === 1 ? "root" : "intermediate"} [0-9a-f]{8}\n`,
      ),
    );
  }
  const verify = ["verify", ...attime, "-CAfile", await ssl.file("root.pem", root!.pem)];
  await ssl.run(...verify, await ssl.file("intermediate.pem", signing.certificate.pem));
});

test("what the intermediate's reach does not allow, OpenSSL refuses too", async (t) => {
  const ssl = await openssl(t);
  const authority = await newAuthority();
  const { signing } = authority.state;
  const text = await ssl.file("roots.pem", authority.trustBundlePem);
  const key = await generateKey();
  const lower = await plannedLeaf({
    issuer: signing,
    key,
    subject: "one too many",
    names: [],
    extensions: [basicConstraints({ ca: true }), keyUsage(["keyCertSign"])],
  });
  const leaf = await plannedLeaf({ issuer: { certificate: lower, key } });
  const untrusted = await ssl.file("untrusted.pem", lower.pem + signing.certificate.pem);
  const verify = ssl.run(
    "verify",
    ...attime,
    "-CAfile",
    text,
    "-untrusted",
    untrusted,
    await ssl.file("leaf.pem", leaf.pem),
  );
  await assert.rejects(verify, /path length constraint exceeded/);
});

test("serial numbers are random and of 128 bits", async () => {
  const authority = await newAuthority();
  const key = await generateKey();
  const serials = Array.from({ length: 64 }, () => {
    const issued = authority.signWorkload({ csrPem: createCsr({ key, spiffeId: catalog }), identity: catalog });
    assert.ok(issued.ok);
    return issued.certificate.serial;
  });
  assert.equal(new Set(serials).size, 64);
  assert.ok(serials.every((serial) => serial.length <= 32));
  // Each of 64 numbers would have to begin with eight zero bits.
  assert.ok(serials.some((serial) => serial.length === 32));
});

const payments = { ...catalog, serviceAccount: "payments" };

const refusals = [
  { name: "another service account", request: { wanted: payments }, expected: "foreign-identity" },
  {
    name: "another namespace",
    request: { wanted: { ...catalog, namespace: "kube-system" } },
    expected: "foreign-identity",
  },
  {
    name: "another trust domain",
    request: { wanted: { ...catalog, trustDomain: "td2" } },
    expected: "foreign-identity",
  },
  {
    name: "a caller of another trust domain",
    request: { identity: { ...catalog, trustDomain: "td2" } },
    expected: "foreign-trust-domain",
  },
  {
    name: "a caller whose name is two",
    request: { identity: { ...catalog, serviceAccount: "a/../b" } },
    expected: "foreign-trust-domain",
  },
  { name: "a longer life than allowed", request: { ttlMs: 91 * dayMs }, expected: "ttl-not-allowed" },
  { name: "a life that is none", request: { ttlMs: 0 }, expected: "ttl-not-allowed" },
  { name: "a life that is no number", request: { ttlMs: Number.NaN }, expected: "ttl-not-allowed" },
  { name: "a request that is none", request: { csrPem: "hello" }, expected: "malformed-csr" },
] as const;

for (const { name, request, expected } of refusals) {
  test(`refused: ${name}`, async () => {
    const authority = await newAuthority();
    const {
      wanted,
      identity = catalog,
      ...rest
    } = { wanted: undefined, ...request } as {
      wanted?: typeof catalog;
      identity?: typeof catalog;
      ttlMs?: number;
    };
    const csrPem = createCsr({ key: await generateKey(), spiffeId: wanted ?? catalog });
    const result = authority.signWorkload({ csrPem, identity, ...rest });
    assert.ok(!result.ok);
    assert.equal(result.code, expected);
  });
}

test("a refusal says for the audit log who asked for what", async () => {
  const authority = await newAuthority();
  const csrPem = createCsr({ key: await generateKey(), spiffeId: payments });
  const result = authority.signWorkload({ csrPem, identity: catalog });
  assert.deepEqual(result, {
    ok: false,
    code: "foreign-identity",
    message:
      "the request is for spiffe://cluster.local/ns/shop/sa/payments, the caller is spiffe://cluster.local/ns/shop/sa/catalog",
    identity: "spiffe://cluster.local/ns/shop/sa/catalog",
    requestedNames: ["uri:spiffe://cluster.local/ns/shop/sa/payments"],
  });
});

const wishes = [
  { name: "a DNS name", extension: "subjectAltName=DNS:payments.shop.svc", expected: "foreign-identity" },
  {
    name: "its own id and a DNS name",
    extension: "subjectAltName=URI:spiffe://cluster.local/ns/shop/sa/catalog,DNS:a",
    expected: "foreign-identity",
  },
  {
    name: "its own id and another",
    extension:
      "subjectAltName=URI:spiffe://cluster.local/ns/shop/sa/catalog,URI:spiffe://cluster.local/ns/shop/sa/payments",
    expected: "foreign-identity",
  },
  { name: "a mail address", extension: "subjectAltName=email:root@cluster.local", expected: "foreign-identity" },
  { name: "the powers of an authority", extension: "basicConstraints=CA:TRUE", expected: "asks-to-be-authority" },
  { name: "no name at all", extension: "keyUsage=digitalSignature", expected: undefined },
  {
    name: "its own id",
    extension: "subjectAltName=URI:spiffe://cluster.local/ns/shop/sa/catalog",
    expected: undefined,
  },
] as const;

for (const { name, extension, expected } of wishes) {
  test(`a request by OpenSSL, for ${name}`, async (t) => {
    const ssl = await openssl(t);
    const authority = await newAuthority();
    const csrPem = await ssl.run(
      "req",
      "-new",
      "-newkey",
      "ec",
      "-pkeyopt",
      "ec_paramgen_curve:P-256",
      "-nodes",
      "-keyout",
      "key.pem",
      "-subj",
      "/CN=spiffe:whatever",
      "-addext",
      extension,
    );
    const result = authority.signWorkload({ csrPem, identity: catalog });
    assert.equal(result.ok ? undefined : result.code, expected);
    // Nothing but the proven id is ever taken over.
    if (!result.ok) return;
    assert.deepEqual(result.certificate.names, [{ type: "uri", value: "spiffe://cluster.local/ns/shop/sa/catalog" }]);
    assert.ok(result.certificate.subjectIsEmpty);
    assert.equal(result.certificate.isCa, false);
  });
}

test("a leaf outlives none of the certificates above it, and an expired authority signs nothing", async () => {
  const signing = await createAuthority({ trustDomain: "cluster.local", lifetimeMs: hourMs, nowMs });
  let atMs = nowMs;
  const authority = new CertificateAuthority({
    trustDomain: "cluster.local",
    state: { phase: "steady", signing },
    now: () => atMs,
  });
  const csrPem = createCsr({ key: await generateKey(), spiffeId: catalog });
  const issued = authority.signWorkload({ csrPem, identity: catalog });
  assert.ok(issued.ok);
  assert.equal(issued.certificate.notAfterMs, nowMs + hourMs);
  atMs += hourMs;
  const late = authority.signWorkload({ csrPem, identity: catalog });
  assert.equal(late.ok ? undefined : late.code, "authority-expired");
});

test("a serving certificate carries host names, addresses and the server's own id", async (t) => {
  const ssl = await openssl(t);
  const authority = await newAuthority();
  const served = authority.issueServing({
    key: await generateKey(),
    hosts: ["localhost", "127.0.0.1", "::1", "fd00::1:2"],
    identity: catalog,
  });
  const chain = await ssl.file("chain.pem", served.chainPem);
  const roots = await ssl.file("roots.pem", authority.trustBundlePem);
  const base = ["verify", ...attime, "-purpose", "sslserver", "-CAfile", roots, "-untrusted", chain];
  await ssl.run(...base, "-verify_hostname", "localhost", chain);
  await ssl.run(...base, "-verify_ip", "127.0.0.1", chain);
  await ssl.run(...base, "-verify_ip", "::1", chain);
  await ssl.run(...base, "-verify_ip", "fd00::1:2", chain);
  await assert.rejects(ssl.run(...base, "-verify_hostname", "example.com", chain), /hostname mismatch/);
  assert.equal(served.certificate.names[0]!.value, "spiffe://cluster.local/ns/shop/sa/catalog");
});

test("expiry tells about every certificate that the mesh depends on", async () => {
  const signing = await createAuthority({ trustDomain: "cluster.local", lifetimeMs: 1000 * dayMs, nowMs });
  const at = (days: number) =>
    new CertificateAuthority({
      trustDomain: "cluster.local",
      state: { phase: "steady", signing },
      now: () => nowMs + days * dayMs,
    })
      .expiry()
      .map(({ role, level, remainingMs }) => `${role} ${level} ${Math.round(remainingMs / dayMs)}`);
  assert.deepEqual(at(1), ["intermediate good 999", "root good 999"]);
  assert.deepEqual(at(901), ["intermediate warning 99", "root warning 99"]);
  assert.deepEqual(at(981), ["intermediate critical 19", "root critical 19"]);
  assert.deepEqual(at(1001), ["intermediate expired -1", "root expired -1"]);
});
