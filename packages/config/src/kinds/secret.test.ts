/** Secrets: what is taken, what is refused, and that no finding repeats a value. */
import assert from "node:assert/strict";
import { before, test } from "node:test";
import { testCertificate, testRevocationList, type TestCertificate } from "../../../../tests/tools/certificates.ts";
import { authorityCredential, concealSecrets, serverCredential } from "./credentials.ts";
import { loadText } from "../load/load.ts";
import { parseResource } from "../load/parse-resource.ts";
import type { Secret } from "./resource.ts";

const base64 = (text: string): string => Buffer.from(text).toString("base64");

let shop: TestCertificate;
let other: TestCertificate;
let authority: TestCertificate;
let revocations: string;

before(async () => {
  [shop, other, authority] = await Promise.all([
    testCertificate({ commonName: "shop", names: ["DNS:shop.example"] }),
    testCertificate({ commonName: "other", names: ["DNS:other.example"] }),
    testCertificate({ commonName: "authority", isAuthority: true }),
  ]);
  const client = await testCertificate({ commonName: "client", issuer: authority });
  revocations = await testRevocationList(authority, client.certificate);
});

function secret(fields: Record<string, unknown>): unknown {
  return { apiVersion: "v1", kind: "Secret", metadata: { name: "shop-tls", namespace: "gw" }, ...fields };
}

const tls = "kubernetes.io/tls";

const cases: readonly { name: string; input: () => Record<string, unknown>; expected: readonly RegExp[] }[] = [
  {
    name: "a certificate with its key",
    input: () => ({ type: tls, data: { "tls.crt": base64(shop.certificate), "tls.key": base64(shop.key) } }),
    expected: [],
  },
  {
    name: "as text",
    input: () => ({ type: tls, stringData: { "tls.crt": shop.certificate, "tls.key": shop.key } }),
    expected: [],
  },
  {
    name: "Istio's generic names",
    input: () => ({ stringData: { cert: shop.certificate, key: shop.key, cacert: authority.certificate } }),
    expected: [],
  },
  {
    name: "authorities and a revocation list",
    input: () => ({ stringData: { "ca.crt": authority.certificate, "ca.crl": revocations } }),
    expected: [],
  },
  { name: "an application's own", input: () => ({ stringData: { key: "k-9731", cert: "none" } }), expected: [] },
  { name: "nothing in it", input: () => ({}), expected: [] },
  {
    name: "the key of another certificate",
    input: () => ({ type: tls, stringData: { "tls.crt": shop.certificate, "tls.key": other.key } }),
    expected: [/stringData\["tls.key"\].*does not belong to the first certificate/],
  },
  {
    name: "the key of another certificate, under the generic names",
    input: () => ({ stringData: { cert: shop.certificate, key: other.key } }),
    expected: [/stringData.key.*does not belong to the first certificate/],
  },
  {
    name: "no key",
    input: () => ({ type: tls, data: { "tls.crt": base64(shop.certificate) } }),
    expected: [/needs "tls.key"/],
  },
  {
    name: "a certificate that is none",
    input: () => ({ type: tls, stringData: { "tls.crt": "hunter2-certificate", "tls.key": shop.key } }),
    expected: [/"tls.crt": there is no certificate/],
  },
  {
    name: "authorities that are none",
    input: () => ({
      type: tls,
      stringData: { "tls.crt": shop.certificate, "tls.key": shop.key, "ca.crt": "hunter2-authority" },
    }),
    expected: [/"ca.crt": there is no certificate/],
  },
  {
    name: "what is not base64",
    input: () => ({ data: { password: "hunter2!" } }),
    expected: [/data.password the value is not base64/],
  },
  {
    name: "a number",
    input: () => ({ stringData: { password: 9_731_973_197 } }),
    expected: [/expected text, found another type/],
  },
  {
    name: "text in place of the mapping",
    input: () => ({ data: "hunter2" }),
    expected: [/expected a mapping, found another type/],
  },
];

for (const { name, input, expected } of cases) {
  test(`Secret: ${name}`, () => {
    const { findings, resource } = parseResource(secret(input()));
    const texts = findings.map(({ path = "", message }) => `${path} ${message}`);
    assert.equal(texts.length, expected.length, texts.join("\n"));
    for (const [index, pattern] of expected.entries()) assert.match(texts[index]!, pattern);
    assert.equal(resource === undefined, expected.length > 0);
    assert.doesNotMatch(JSON.stringify(findings), /hunter2|9731|BEGIN|MI[IGM]/);
  });
}

test("a key that is pasted with the wrong indentation stands in no finding", () => {
  const lines = shop.key.trim().split("\n");
  const text = `apiVersion: v1\nkind: Secret\nmetadata: { name: a }\nstringData:\n  tls.key: |\n    ${lines[0]}\n ${lines.slice(1).join("\n ")}\n`;
  const { findings } = loadText(text, "secret.yaml");
  assert.equal(findings.length, 1);
  for (const line of lines) assert.ok(!JSON.stringify(findings).includes(line.slice(0, 20)));
});

function parsed(fields: Record<string, unknown>): Secret {
  const { resource } = parseResource(secret(fields));
  assert.equal(resource?.kind, "Secret");
  return resource;
}

test("stringData beats data, and cert and key beat tls.crt and tls.key", () => {
  const read = serverCredential(
    parsed({
      data: { cert: base64(shop.certificate), key: base64("overridden"), "tls.crt": base64(other.certificate) },
      stringData: { key: shop.key, "tls.key": other.key },
    }),
  );
  assert.ok(read.ok);
  assert.equal(Buffer.from(read.credential.certificateChain).toString(), shop.certificate);
  assert.ok(read.expiresAtMs > Date.now());
});

test("authorities are those of cacert, else of ca.crt", () => {
  const generic = authorityCredential(
    parsed({ stringData: { cacert: authority.certificate, "ca.crt": shop.certificate } }),
  );
  assert.ok(generic.ok);
  assert.equal(Buffer.from(generic.credential.trustedCa).toString(), authority.certificate);
  const tlsNames = authorityCredential(
    parsed({ stringData: { "ca.crt": authority.certificate, "ca.crl": revocations } }),
  );
  assert.ok(tlsNames.ok);
  assert.equal(Buffer.from(tlsNames.credential.revocationList!).toString(), revocations);
  assert.equal(authorityCredential(parsed({})).ok, false);
});

test("a reader sees the keys of the data and no value", () => {
  const resource = parsed({
    type: tls,
    data: { "tls.crt": base64(shop.certificate) },
    stringData: { "tls.key": shop.key },
    metadata: {
      name: "a",
      namespace: "gw",
      annotations: { "kubectl.kubernetes.io/last-applied-configuration": shop.key, mine: "yes" },
    },
  });
  const shown = concealSecrets(resource);
  assert.deepEqual(shown, {
    apiVersion: "v1",
    kind: "Secret",
    type: tls,
    metadata: { name: "a", namespace: "gw", annotations: { mine: "yes" } },
    data: { "tls.crt": "(hidden)", "tls.key": "(hidden)" },
  });
  assert.equal(parseResource(shown).resource, undefined, "what is hidden cannot be applied by mistake");
});
