// Certificates as we read them, as OpenSSL prints them and as another library reads them: three must agree.
import assert from "node:assert/strict";
import { X509Certificate } from "node:crypto";
import test from "node:test";
import {
  AuthorityKeyIdentifierExtension,
  BasicConstraintsExtension,
  ExtendedKeyUsageExtension,
  SubjectAlternativeNameExtension,
  SubjectKeyIdentifierExtension,
  X509Certificate as OtherCertificate,
} from "../testing/other-library.ts";
import fc from "fast-check";
import { openssl } from "../testing/openssl.ts";
import { certificatesOf, issueTo, newAuthority } from "../testing/workload.ts";
import { parseCertificate, parseCertificates, type Certificate } from "./certificate.ts";

function assertAgreed(ours: Certificate): void {
  const node = new X509Certificate(ours.der);
  const theirs = new OtherCertificate(ours.der);
  assert.equal(ours.serial, node.serialNumber);
  assert.equal(ours.notBeforeMs, node.validFromDate.getTime());
  assert.equal(ours.notAfterMs, theirs.notAfter.getTime());
  assert.equal(ours.isCa, node.ca);
  assert.deepEqual(ours.subjectDer, Buffer.from(theirs.subjectName.toArrayBuffer()));
  assert.deepEqual(ours.issuerDer, Buffer.from(theirs.issuerName.toArrayBuffer()));
  assert.equal(ours.pathLength, theirs.getExtension(BasicConstraintsExtension)?.pathLength);
  assert.deepEqual(
    [...(ours.extendedKeyUsages ?? [])],
    [...(theirs.getExtension(ExtendedKeyUsageExtension)?.usages ?? [])],
  );
  assert.equal(ours.subjectKeyIdentifier?.toString("hex"), theirs.getExtension(SubjectKeyIdentifierExtension)?.keyId);
  assert.equal(
    ours.authorityKeyIdentifier?.toString("hex"),
    theirs.getExtension(AuthorityKeyIdentifierExtension)?.keyId,
  );
  const names = theirs.getExtension(SubjectAlternativeNameExtension)?.names.items ?? [];
  assert.deepEqual(
    ours.names.filter(({ type }) => type === "uri" || type === "dns").map(({ type, value }) => `${type}:${value}`),
    names
      .filter(({ type }) => type === "url" || type === "dns")
      .map(({ type, value }) => `${type === "url" ? "uri" : type}:${value}`),
  );
}

test("our own certificates are read alike", async () => {
  for (const algorithm of ["P-256", "Ed25519", "RSA-2048"] as const) {
    const authority = await newAuthority({ algorithm });
    const workload = await issueTo(authority);
    for (const certificate of [...certificatesOf(workload.chainPem), ...authority.roots]) assertAgreed(certificate);
  }
});

const extensions = [
  "basicConstraints=CA:FALSE",
  "basicConstraints=critical,CA:TRUE,pathlen:3",
  "keyUsage=critical,digitalSignature,keyAgreement,decipherOnly",
  "extendedKeyUsage=serverAuth,codeSigning,1.2.3.4.5.99999",
  "subjectAltName=DNS:a.example,DNS:*.b.example,IP:10.1.2.3,IP:fd00::7,URI:spiffe://td/ns/a/sa/b,email:a@b.c",
  "subjectAltName=dirName:place",
  "certificatePolicies=1.2.3.4",
];

for (const extension of extensions) {
  test(`a certificate by OpenSSL with ${extension.slice(0, 60)}`, async (t) => {
    const ssl = await openssl(t);
    const config = await ssl.file(
      "openssl.cnf",
      `[req]\ndistinguished_name=dn\nprompt=no\nx509_extensions=ext\n[dn]\nO=Example\nCN=test\n[ext]\nsubjectKeyIdentifier=hash\n${extension}\n[place]\nC=DE\n`,
    );
    const pem = await ssl.run(
      "req",
      "-x509",
      "-newkey",
      "ec",
      "-pkeyopt",
      "ec_paramgen_curve:P-256",
      "-nodes",
      "-keyout",
      "key.pem",
      "-days",
      "20000",
      "-config",
      config,
    );
    const [certificate] = certificatesOf(pem);
    assertAgreed(certificate!);
    assert.equal(certificate!.subject, "O=Example, CN=test");
    assert.ok(certificate!.isSignedBy(certificate!.publicKey));
  });
}

test("limits that are not enforced here are named", async (t) => {
  const ssl = await openssl(t);
  const pem = await ssl.run(
    "req",
    "-x509",
    "-newkey",
    "ec",
    "-pkeyopt",
    "ec_paramgen_curve:P-256",
    "-nodes",
    "-keyout",
    "key.pem",
    "-subj",
    "/CN=x",
    "-addext",
    "nameConstraints=permitted;URI:cluster.local",
    "-addext",
    "1.2.3.4=critical,ASN1:NULL",
  );
  assert.deepEqual(certificatesOf(pem)[0]!.unenforcedExtensions, ["2.5.29.30", "1.2.3.4"]);
});

test("two signature algorithms in one certificate are one too many", async () => {
  const [root] = (await newAuthority()).roots;
  const algorithm = Buffer.from("2a8648ce3d040302", "hex");
  const changed = Buffer.from(root!.der);
  changed[changed.lastIndexOf(algorithm) + algorithm.length - 1] = 3;
  assert.deepEqual(parseCertificate(changed), { ok: false, message: "it names two signature algorithms" });
});

test("an old certificate of version 1 is refused with a reason", async (t) => {
  const ssl = await openssl(t);
  await ssl.run(
    "req",
    "-new",
    "-newkey",
    "ed25519",
    "-nodes",
    "-keyout",
    "key.pem",
    "-subj",
    "/CN=x",
    "-out",
    "csr.pem",
  );
  const pem = await ssl.run("x509", "-req", "-in", "csr.pem", "-signkey", "key.pem");
  assert.deepEqual(parseCertificates(pem), { ok: false, message: "certificate 1: it is not of X.509 version 3" });
});

const texts = [
  { name: "nothing", input: "", expected: /no certificate in it/ },
  { name: "half a block", input: "-----BEGIN CERTIFICATE-----\nAQID", expected: /not well-formed PEM/ },
  {
    name: "a key",
    input: "-----BEGIN PRIVATE KEY-----\nAQID\n-----END PRIVATE KEY-----",
    expected: /block 1 is a PRIVATE KEY/,
  },
  {
    name: "bytes that are none",
    input: "-----BEGIN CERTIFICATE-----\nAQID\n-----END CERTIFICATE-----",
    expected: /certificate 1: /,
  },
  {
    name: "more than anyone needs",
    input: "-----BEGIN CERTIFICATE-----\nAQID\n-----END CERTIFICATE-----\n".repeat(257),
    expected: /more than 256/,
  },
] as const;

for (const { name, input, expected } of texts) {
  test(`a text that holds ${name} is refused`, () => {
    const parsed = parseCertificates(input);
    assert.match(parsed.ok ? "" : parsed.message, expected);
  });
}

for (const { name, from, to } of [
  { name: "its key's use in bits that are unused", from: "03020106", to: "03020306" },
  { name: "an identifier of its issuer's key that is none", from: "30168014", to: "30160014" },
  { name: "an identifier of its issuer's key that is cut short", from: "30168014", to: "30168013" },
  { name: "constraints of names that are none", from: "0603551d0f", to: "0603551d1e" },
]) {
  test(`no authority: ${name}`, async () => {
    const hex = (await newAuthority()).roots[0]!.der.toString("hex");
    assert.ok(hex.includes(from));
    const bytes = Buffer.from(hex.replace(from, to), "hex");
    assert.equal(new X509Certificate(bytes).ca, false, "as OpenSSL has it");
    assert.equal(parseCertificate(bytes).ok, false);
  });
}

test("no bytes make the reader fail", async () => {
  const [root] = (await newAuthority()).roots;
  const mutation = fc.tuple(fc.nat(root!.der.length - 1), fc.nat(255));
  fc.assert(
    fc.property(fc.array(mutation, { maxLength: 4 }), fc.nat(root!.der.length), (changes, length) => {
      const bytes = Buffer.from(root!.der.subarray(0, length));
      for (const [at, value] of changes) if (at < length) bytes[at] = value;
      const parsed = parseCertificate(bytes);
      if (!parsed.ok) return;
      // What is read after all must be what OpenSSL reads, too. It calls none an authority whose key usage does not
      // allow it to sign.
      const { isCa, keyUsages } = parsed.certificate;
      assert.equal(isCa && keyUsages?.has("keyCertSign") !== false, new X509Certificate(bytes).ca);
    }),
    { numRuns: 1000 },
  );
});
