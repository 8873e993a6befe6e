// Certificate requests: ours as OpenSSL and another library read them, theirs as we do, and everything that is refused.
import assert from "node:assert/strict";
import { generateKeyPairSync, type KeyObject } from "node:crypto";
import test from "node:test";
import fc from "fast-check";
import { bitString, explicit, objectIdentifier, sequence, set, smallInteger } from "../der/der-writer.ts";
import { oid } from "../der/object-identifiers.ts";
import { generateKey } from "../keys/generate-key.ts";
import type { KeyAlgorithm } from "../keys/key-algorithm.ts";
import { publicKeyInfo } from "../keys/private-key.ts";
import { parsePem, pemText } from "../pem.ts";
import { Pkcs10CertificateRequest } from "../testing/other-library.ts";
import { openssl } from "../testing/openssl.ts";
import { catalog } from "../testing/workload.ts";
import { encodeExtension, type Extension, subjectAlternativeName } from "../x509/extensions.ts";
import { signatureAlgorithm, signBytes } from "../x509/signature.ts";
import { createCsr } from "./create-csr.ts";
import { parseCsr } from "./parse-csr.ts";

const algorithms: readonly KeyAlgorithm[] = ["P-256", "P-384", "Ed25519", "RSA-2048"];

for (const algorithm of algorithms) {
  test(`a request with ${algorithm} is good to OpenSSL, to another library and to us`, async (t) => {
    const ssl = await openssl(t);
    const key = await generateKey(algorithm);
    const pem = createCsr({ key, spiffeId: catalog });
    const text = await ssl.run("req", "-in", await ssl.file("csr.pem", pem), "-noout", "-verify", "-text");
    assert.match(text, /Subject: *\n/);
    assert.match(
      text,
      /X509v3 Subject Alternative Name: critical\n\s+URI:spiffe:\/\/cluster\.local\/ns\/shop\/sa\/catalog/,
    );
    assert.ok(await new Pkcs10CertificateRequest(pem).verify());
    const parsed = parseCsr(pem);
    assert.ok(parsed.ok);
    assert.ok(publicKeyInfo(parsed.request.publicKey).equals(publicKeyInfo(key)));
    assert.deepEqual(parsed.request.requestedNames, [
      { type: "uri", value: "spiffe://cluster.local/ns/shop/sa/catalog" },
    ]);
    assert.equal(parsed.request.asksToBeCa, false);
  });
}

const theirs = [
  { name: "P-256", args: ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"], expected: "good" },
  {
    name: "P-521 with SHA-512",
    args: ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-521", "-sha512"],
    expected: "good",
  },
  { name: "RSA with SHA-384", args: ["-newkey", "rsa:2048", "-sha384"], expected: "good" },
  { name: "Ed25519", args: ["-newkey", "ed25519"], expected: "good" },
  {
    name: "SHA-1",
    args: ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-sha1"],
    expected: "bad-csr-signature",
  },
  { name: "RSA of 1024 bits", args: ["-newkey", "rsa:1024"], expected: "unsuitable-key" },
  {
    name: "the curve of Bitcoin",
    args: ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:secp256k1"],
    expected: "unsuitable-key",
  },
  { name: "Ed448", args: ["-newkey", "ed448"], expected: "unsuitable-key" },
  {
    name: "RSA-PSS signature",
    args: ["-newkey", "rsa:2048", "-sigopt", "rsa_padding_mode:pss"],
    expected: "bad-csr-signature",
  },
] as const;

for (const { name, args, expected } of theirs) {
  test(`a request by OpenSSL, ${name}: ${expected}`, async (t) => {
    const ssl = await openssl(t);
    const pem = await ssl.run("req", "-new", ...args, "-nodes", "-keyout", "key.pem", "-subj", "/O=istio");
    const parsed = parseCsr(pem);
    assert.equal(parsed.ok ? "good" : parsed.code, expected);
  });
}

interface Plan {
  readonly key?: KeyObject;
  readonly signer?: KeyObject;
  readonly version?: number;
  readonly attributes?: readonly Uint8Array[];
}

const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });

function planned(plan: Plan): string {
  const { key = privateKey, signer = key, version = 0, attributes = [] } = plan;
  const info = sequence(smallInteger(version), sequence(), publicKeyInfo(key), explicit(0, ...attributes));
  return pemText("CERTIFICATE REQUEST", sequence(info, signatureAlgorithm(signer), bitString(signBytes(info, signer))));
}

const extensionRequest = (...extensions: readonly Extension[]) =>
  sequence(objectIdentifier(oid.extensionRequest), set(sequence(...extensions.map(encodeExtension))));
const name = subjectAlternativeName([{ type: "uri", value: "spiffe://cluster.local/ns/shop/sa/catalog" }], true);
const other = subjectAlternativeName([{ type: "uri", value: "spiffe://cluster.local/ns/shop/sa/payments" }], true);
const good = createCsr({ key: privateKey, spiffeId: catalog });

const bad = [
  { name: "nothing", input: "", expected: "malformed-csr" },
  { name: "two requests", input: good + good, expected: "malformed-csr" },
  {
    name: "a certificate's label",
    input: good.replaceAll("CERTIFICATE REQUEST", "CERTIFICATE"),
    expected: "malformed-csr",
  },
  { name: "more text than any request has", input: good + "x".repeat(16 * 1024), expected: "malformed-csr" },
  { name: "a request of version 2", input: planned({ version: 1 }), expected: "malformed-csr" },
  {
    name: "somebody else's signature",
    input: planned({ signer: generateKeyPairSync("ec", { namedCurve: "P-256" }).privateKey }),
    expected: "bad-csr-signature",
  },
  {
    name: "a signature by another kind of key",
    input: planned({ signer: generateKeyPairSync("ed25519").privateKey }),
    expected: "bad-csr-signature",
  },
  {
    name: "two extension requests",
    input: planned({ attributes: [extensionRequest(name), extensionRequest(other)] }),
    expected: "malformed-csr",
  },
  {
    name: "one extension twice",
    input: planned({ attributes: [extensionRequest(name, other)] }),
    expected: "malformed-csr",
  },
  {
    name: "two values of one extension request",
    input: planned({
      attributes: [
        sequence(
          objectIdentifier(oid.extensionRequest),
          set(sequence(encodeExtension(name)), sequence(encodeExtension(other))),
        ),
      ],
    }),
    expected: "malformed-csr",
  },
  {
    name: "a name with a NUL",
    input: planned({
      attributes: [
        extensionRequest(
          subjectAlternativeName([{ type: "uri", value: "spiffe://cluster.local/ns/shop/sa/catalog\0.evil" }], true),
        ),
      ],
    }),
    expected: "malformed-csr",
  },
  {
    name: "an empty list of names",
    input: planned({ attributes: [extensionRequest(subjectAlternativeName([], true))] }),
    expected: "malformed-csr",
  },
] as const;

for (const { name: what, input, expected } of bad) {
  test(`a request refused: ${what}`, () => {
    const parsed = parseCsr(input);
    assert.equal(parsed.ok ? "good" : parsed.code, expected);
  });
}

test("Windows' line ends and the older label are read", () => {
  assert.ok(parseCsr(good.replaceAll("\n", "\r\n")).ok);
  assert.ok(parseCsr(good.replaceAll("CERTIFICATE REQUEST", "NEW CERTIFICATE REQUEST")).ok);
});

test("no request with a changed bit is good: all of it is signed, and the rest is strict", () => {
  const [block] = parsePem(good)!;
  fc.assert(
    fc.property(fc.nat(block!.der.length * 8 - 1), (bit) => {
      const changed = Buffer.from(block!.der);
      changed[bit >> 3]! ^= 0x80 >> (bit & 7);
      assert.equal(parseCsr(pemText("CERTIFICATE REQUEST", changed)).ok, false);
    }),
    { numRuns: 1500 },
  );
});

test("no bytes make the reader fail", () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => {
      assert.equal(parseCsr(pemText("CERTIFICATE REQUEST", bytes)).ok, false);
    }),
    { numRuns: 500 },
  );
});
