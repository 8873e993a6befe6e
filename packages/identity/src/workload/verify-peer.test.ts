// Every reason for which a peer is refused, each with a certificate made to be refused for it; OpenSSL agrees wherever
// it judges.
import assert from "node:assert/strict";
import { createPublicKey } from "node:crypto";
import test from "node:test";
import fc from "fast-check";
import { oid } from "../der/object-identifiers.ts";
import { parsePrivateKey } from "../keys/private-key.ts";
import { generateKey } from "../keys/generate-key.ts";
import { createAuthority } from "../authority/create-authority.ts";
import { createAuthorityCertificate } from "../authority/create-authority-certificate.ts";
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
import type { Certificate } from "../x509/certificate.ts";
import { basicConstraints, extendedKeyUsage, keyUsage } from "../x509/extensions.ts";
import type { SubjectAlternativeName } from "../x509/subject-alternative-names.ts";
import { verifyPath } from "../x509/verify-path.ts";
import { identifyPeer } from "./identify-peer.ts";
import { type PeerVerification, verifyPeer } from "./verify-peer.ts";

const authority = await newAuthority();
const { signing } = authority.state;
const foreign = await newAuthority();
const workload = await issueTo(authority);
const good = certificatesOf(workload.chainPem);
const loneKey = await generateKey();
const leafExtensions = [basicConstraints({ ca: false }), keyUsage(["digitalSignature"])];

const uri = (value: string): SubjectAlternativeName => ({ type: "uri", value });
const planned = async (plan: Partial<Parameters<typeof plannedLeaf>[0]>) => [
  await plannedLeaf({ issuer: signing, ...plan }),
  ...signing.chain,
];
const selfSigned = await plannedSelfSigned();

async function plannedSelfSigned(): Promise<Certificate> {
  const stem = createAuthorityCertificate({
    organization: "cluster.local",
    commonName: "self",
    key: loneKey,
    pathLength: 0,
    lifetimeMs: dayMs,
    nowMs,
  });
  // Its own name and key as issuer, its own name as subject.
  return plannedLeaf({ issuer: { certificate: stem, key: loneKey }, key: loneKey, subjectDer: stem.subjectDer });
}

interface Row {
  readonly name: string;
  readonly chain: readonly (Certificate | Uint8Array)[];
  readonly expected: string;
  readonly with?: Partial<PeerVerification>;
}

const shortAuthority = await createAuthority({ trustDomain: "cluster.local", lifetimeMs: hourMs, nowMs });
const strictKey = await generateKey();
const strictRoot = createAuthorityCertificate({
  organization: "cluster.local",
  commonName: "reaches nowhere",
  key: strictKey,
  pathLength: 0,
  lifetimeMs: dayMs,
  nowMs,
});
const belowKey = await generateKey();
const below = createAuthorityCertificate({
  organization: "cluster.local",
  commonName: "below",
  key: belowKey,
  pathLength: 0,
  lifetimeMs: dayMs,
  nowMs,
  issuer: { certificate: strictRoot, key: strictKey },
});
const notSigning = await plannedLeaf({
  issuer: signing,
  key: loneKey,
  subject: "no signer",
  names: [],
  extensions: [basicConstraints({ ca: true }), keyUsage(["crlSign"])],
});
const workloadKey = parsePrivateKey(workload.keyPem)!;
const nextLeaf = await plannedLeaf({ issuer: { certificate: good[0]!, key: workloadKey } });

const rows: readonly Row[] = [
  { name: "a workload's own chain", chain: good, expected: "shop/catalog" },
  { name: "with the root sent along", chain: [...good, ...signing.roots], expected: "shop/catalog" },
  {
    name: "with foreign certificates between",
    chain: [good[0]!, ...foreign.roots, ...foreign.state.signing.chain, ...good.slice(1)],
    expected: "shop/catalog",
  },
  { name: "as a server", chain: good, expected: "shop/catalog", with: { peerIs: "server" } },
  { name: "of an alias", chain: good, expected: "shop/catalog", with: { trustDomains: ["new", "cluster.local"] } },
  {
    name: "with DNS names beside",
    chain: await planned({ names: [{ type: "dns", value: "a" }, uri("spiffe://cluster.local/ns/a/sa/b")] }),
    expected: "a/b",
  },
  { name: "without limits of use", chain: await planned({ extensions: [] }), expected: "shop/catalog" },
  { name: "a second before its end", chain: good, expected: "shop/catalog", with: { nowMs: nowMs + dayMs - 1000 } },
  { name: "at its end", chain: good, expected: "expired", with: { nowMs: nowMs + dayMs } },
  { name: "no certificate", chain: [], expected: "no-certificate" },
  { name: "bytes that are none", chain: [Buffer.from("3003020101", "hex")], expected: "malformed" },
  { name: "a broken certificate behind a good one", chain: [...good, Buffer.from([0x30])], expected: "malformed" },
  { name: "eleven certificates", chain: Array.from({ length: 11 }, () => good[0]!), expected: "chain-too-long" },
  { name: "the intermediate left out", chain: good.slice(0, 1), expected: "foreign-authority" },
  {
    name: "of a foreign authority",
    chain: certificatesOf((await issueTo(foreign)).chainPem),
    expected: "foreign-authority",
  },
  { name: "with no roots", chain: good, expected: "foreign-authority", with: { roots: [] } },
  {
    name: "signed with another key under the authority's name",
    chain: await planned({ issuer: { certificate: signing.certificate, key: loneKey } }),
    expected: "foreign-authority",
  },
  { name: "of another trust domain", chain: good, expected: "wrong-trust-domain", with: { trustDomains: ["td2"] } },
  {
    name: "of a foreign trust domain and authority",
    chain: await planned({ names: [uri("spiffe://td2/ns/shop/sa/catalog")] }),
    expected: "wrong-trust-domain",
  },
  { name: "expired", chain: good, expected: "expired", with: { nowMs: nowMs + dayMs + 1000 } },
  { name: "not yet valid", chain: good, expected: "not-yet-valid", with: { nowMs: nowMs - 121_000 } },
  {
    name: "of an expired authority",
    chain: [await plannedLeaf({ issuer: shortAuthority }), ...shortAuthority.chain],
    expected: "expired",
    with: { roots: shortAuthority.roots, nowMs: nowMs + 2 * hourMs },
  },
  { name: "signed by itself", chain: [selfSigned], expected: "self-signed" },
  {
    name: "signed by itself, and trusted",
    chain: [selfSigned],
    expected: "self-signed",
    with: { roots: [selfSigned] },
  },
  { name: "the intermediate as leaf", chain: signing.chain, expected: "leaf-is-authority" },
  { name: "the root as leaf", chain: signing.roots, expected: "self-signed" },
  {
    name: "a leaf that may sign certificates",
    chain: await planned({
      extensions: [basicConstraints({ ca: false }), keyUsage(["digitalSignature", "keyCertSign"])],
    }),
    expected: "leaf-is-authority",
  },
  {
    name: "for servers, shown by a client",
    chain: await planned({ extensions: [...leafExtensions, extendedKeyUsage([oid.serverAuth])] }),
    expected: "wrong-usage",
  },
  {
    name: "for clients, shown by a server",
    chain: await planned({ extensions: [...leafExtensions, extendedKeyUsage([oid.clientAuth])] }),
    expected: "wrong-usage",
    with: { peerIs: "server" },
  },
  {
    name: "not for signatures",
    chain: await planned({ extensions: [keyUsage(["keyEncipherment"])] }),
    expected: "wrong-usage",
  },
  { name: "without names", chain: await planned({ names: [], subject: "catalog" }), expected: "no-spiffe-id" },
  {
    name: "with a DNS name alone",
    chain: await planned({ names: [{ type: "dns", value: "catalog" }] }),
    expected: "no-spiffe-id",
  },
  {
    name: "with a web address",
    chain: await planned({ names: [uri("https://cluster.local/ns/shop/sa/catalog")] }),
    expected: "no-spiffe-id",
  },
  {
    name: "with a SPIFFE id of another form",
    chain: await planned({ names: [uri("spiffe://cluster.local/catalog")] }),
    expected: "no-spiffe-id",
  },
  {
    name: "with two URIs",
    chain: await planned({ names: [uri("spiffe://cluster.local/ns/a/sa/b"), uri("spiffe://cluster.local/ns/a/sa/c")] }),
    expected: "several-uris",
  },
  {
    name: "with the same URI twice",
    chain: await planned({ names: [uri("spiffe://cluster.local/ns/a/sa/b"), uri("spiffe://cluster.local/ns/a/sa/b")] }),
    expected: "several-uris",
  },
  {
    name: "below more authorities than the root allows",
    chain: [await plannedLeaf({ issuer: { certificate: below, key: belowKey } }), below],
    expected: "path-too-long",
    with: { roots: [strictRoot] },
  },
  { name: "signed by a workload", chain: [nextLeaf, ...good], expected: "not-an-authority" },
  {
    name: "signed by an authority that may not sign",
    chain: [await plannedLeaf({ issuer: { certificate: notSigning, key: loneKey } }), notSigning, ...signing.chain],
    expected: "not-an-authority",
  },
  {
    name: "with a critical extension that nobody knows",
    chain: await planned({ extensions: [{ oid: "1.2.3.4", critical: true, value: Buffer.from("0500", "hex") }] }),
    expected: "unenforced-extension",
  },
];

for (const { name, chain, expected, with: given } of rows) {
  test(`a peer ${name}: ${expected}`, () => {
    const result = verifyPeer({
      chain: chain.map((one) => (one instanceof Uint8Array ? one : one.der)),
      roots: authority.roots,
      trustDomains: ["cluster.local"],
      peerIs: "client",
      nowMs,
      ...given,
    });
    assert.equal(
      result.ok ? `${result.spiffeId.namespace}/${result.spiffeId.serviceAccount}` : result.reason,
      expected,
    );
  });
}

test("the look at the leaf alone, for verified chains, agrees wherever the chain is not the reason", () => {
  const aboutTheLeaf =
    /\/|malformed|leaf-is-authority|wrong-usage|no-spiffe-id|several-uris|wrong-trust-domain|unenforced-extension/;
  const compared = rows.filter(
    ({ name, expected }) => aboutTheLeaf.test(expected) && !name.includes("behind a good one"),
  );
  for (const { name, chain, expected, with: given } of compared) {
    const [leaf] = chain;
    const result = identifyPeer(leaf instanceof Uint8Array ? leaf : leaf!.der, {
      trustDomains: ["cluster.local"],
      peerIs: "client",
      ...given,
    });
    const identity = result.ok ? `${result.spiffeId.namespace}/${result.spiffeId.serviceAccount}` : result.reason;
    assert.equal(identity, expected, name);
  }
});

test("during a change of roots both are believed", async () => {
  const older = await issueTo(authority);
  const newer = await issueTo(foreign);
  for (const one of [older, newer]) {
    const result = verifyPeer({
      chain: certificatesOf(one.chainPem).map(({ der }) => der),
      roots: [...authority.roots, ...foreign.roots],
      trustDomains: ["cluster.local"],
      peerIs: "server",
      nowMs,
    });
    assert.ok(result.ok);
  }
});

test("many look-alikes of an authority cost a bounded number of signatures", () => {
  const [leaf, intermediate] = good;
  let verified = 0;
  const counting = (one: Certificate): Certificate => ({
    ...one,
    isSignedBy: (key) => {
      verified += 1;
      return one.isSignedBy(key);
    },
  });
  const twins = Array.from({ length: 200 }, () => ({
    ...counting(intermediate!),
    publicKey: createPublicKey(loneKey),
  }));
  const result = verifyPath({ certificate: counting(leaf!), intermediates: twins, roots: authority.roots, nowMs });
  assert.ok(!result.ok);
  assert.ok(verified <= 24, `${verified} signatures`);
});

test("what OpenSSL refuses for its chain or its time is refused here, and the other way round", async (t) => {
  const ssl = await openssl(t);
  const roots = await ssl.file("roots.pem", authority.trustBundlePem);
  const compared = rows.filter(
    ({ chain, with: given }) =>
      chain.length > 0 && given?.roots === undefined && chain.every((one) => !(one instanceof Uint8Array)),
  );
  // Names and the number of certificates are the mesh's rules, which OpenSSL does not know.
  const oursAlone = new Set([
    "no-spiffe-id",
    "several-uris",
    "wrong-trust-domain",
    "chain-too-long",
    "leaf-is-authority",
    "self-signed",
  ]);
  for (const { name, chain, expected, with: given } of compared) {
    if (oursAlone.has(expected)) continue;
    const [leaf, ...rest] = chain as readonly Certificate[];
    const file = await ssl.file("leaf.pem", leaf!.pem);
    const untrusted = await ssl.file("untrusted.pem", rest.map(({ pem }) => pem).join("\n"));
    const purpose = given?.peerIs === "server" ? "sslserver" : "sslclient";
    const seconds = String(Math.floor((given?.nowMs ?? nowMs) / 1000));
    const answer = await ssl
      .run(
        "verify",
        "-attime",
        seconds,
        "-purpose",
        purpose,
        "-CAfile",
        roots,
        ...(rest.length > 0 ? ["-untrusted", untrusted] : []),
        file,
      )
      .then(
        () => true,
        () => false,
      );
    assert.equal(answer, expected.includes("/"), name);
  }
});

test("no certificate with a changed bit is believed, and none makes the reader fail", () => {
  const [leaf, ...rest] = good;
  fc.assert(
    fc.property(fc.nat(leaf!.der.length * 8 - 1), (bit) => {
      const changed = Buffer.from(leaf!.der);
      changed[bit >> 3]! ^= 0x80 >> (bit & 7);
      const result = verifyPeer({
        chain: [changed, ...rest.map(({ der }) => der)],
        roots: authority.roots,
        trustDomains: ["cluster.local"],
        peerIs: "client",
        nowMs,
      });
      assert.equal(result.ok, false);
    }),
    { numRuns: 1500 },
  );
});

test("the identity that is read is the one that was signed", () => {
  assert.deepEqual(workload.spiffeId, catalog);
});
