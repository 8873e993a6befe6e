// What the commands about certificates say of a proxy's secrets.
import assert from "node:assert/strict";
import { before, describe, test } from "node:test";
import { testCertificate, type TestCertificate } from "../../../../../tests/tools/certificates.ts";
import type { SecretDump } from "../../proxy-admin/proxy-dump.ts";
import { compareTrust, comparisonText, readTrust } from "./proxy-config-rootca-compare.ts";
import { secretText } from "./proxy-config-secret.ts";
import { secretRows } from "./secret-certificates.ts";

const dayMs = 86_400_000;

const bytes = (...pems: readonly string[]): { readonly inline_bytes: string } => ({
  inline_bytes: Buffer.from(pems.join("\n")).toString("base64"),
});

function chain(...pems: readonly string[]): SecretDump {
  return { name: "default", state: "ACTIVE", secret: { tls_certificate: { certificate_chain: bytes(...pems) } } };
}

function roots(...pems: readonly string[]): SecretDump {
  return { name: "ROOTCA", state: "ACTIVE", secret: { validation_context: { trusted_ca: bytes(...pems) } } };
}

let root: TestCertificate;
let otherRoot: TestCertificate;
let intermediate: TestCertificate;
let leaf: TestCertificate;
let otherLeaf: TestCertificate;

before(async () => {
  [root, otherRoot] = await Promise.all(
    ["Root", "Other"].map((commonName) => testCertificate({ commonName, isAuthority: true })) as [
      Promise<TestCertificate>,
      Promise<TestCertificate>,
    ],
  );
  const names = ["URI:spiffe://cluster.local/ns/shop/sa/catalog"];
  intermediate = await testCertificate({ commonName: "Intermediate", isAuthority: true, issuer: root });
  leaf = await testCertificate({ commonName: "catalog", names, issuer: intermediate, days: 1 });
  otherLeaf = await testCertificate({ commonName: "catalog", names, issuer: otherRoot, days: 1 });
});

describe("proxy-config secret", () => {
  test("a chain has the row of its leaf, authorities one each", () => {
    const [row, ...more] = secretRows(chain(leaf.certificate, intermediate.certificate), Date.now());
    assert.deepEqual(more, []);
    const { serialNumber, notAfter, notBefore, ...others } = row!;
    assert.deepEqual(others, {
      name: "default",
      type: "Cert Chain",
      status: "ACTIVE",
      valid: true,
      subject: "CN=catalog",
      trustDomain: "cluster.local",
    });
    assert.match(serialNumber!, /^[1-9a-f][0-9a-f]+$/);
    for (const time of [notAfter, notBefore]) assert.match(time!, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
    const authorities = secretRows(roots(root.certificate, otherRoot.certificate), Date.now());
    assert.deepEqual(
      authorities.map(({ name, type, subject }) => [name, type, subject]),
      [
        ["ROOTCA", "CA", "CN=Root"],
        ["ROOTCA", "CA", "CN=Other"],
      ],
    );
  });

  test("a chain is as valid as its least valid certificate, at the moment that is asked about", () => {
    const valid = (laterMs: number): boolean | undefined =>
      secretRows(chain(leaf.certificate, intermediate.certificate), Date.now() + laterMs)[0]!.valid;
    assert.deepEqual([valid(0), valid(2 * dayMs), valid(-2 * dayMs)], [true, false, false]);
  });

  const odd: readonly { name: string; secret: SecretDump; expected: unknown }[] = [
    {
      name: "one that has not come yet",
      secret: { name: "kubernetes://missing", state: "WARMING" },
      expected: [{ name: "kubernetes://missing", type: "", status: "WARMING" }],
    },
    {
      name: "no certificate",
      secret: { name: "a", state: "ACTIVE", secret: { generic_secret: {} } },
      expected: [{ name: "a", type: "Generic", status: "ACTIVE" }],
    },
    {
      name: "a file of the proxy's machine",
      secret: { name: "a", state: "ACTIVE", secret: { tls_certificate: { certificate_chain: { filename: "/f" } } } },
      expected: [{ name: "a", type: "Cert Chain", status: "ACTIVE", valid: false }],
    },
    {
      name: "no PEM",
      secret: { name: "a", state: "ACTIVE", secret: { validation_context: { trusted_ca: { inline_string: "?" } } } },
      expected: [{ name: "a", type: "CA", status: "ACTIVE", valid: false }],
    },
  ];
  for (const { name, secret, expected } of odd) {
    test(name, () => assert.deepEqual(secretRows(secret, 0), expected));
  }

  test("the workload's own stand first; a proxy without any is told of", () => {
    const dump: SecretDump[] = [
      { name: "browser-login://a", state: "WARMING" },
      roots(root.certificate),
      chain(leaf.certificate),
    ];
    const text = secretText(
      "a.shop",
      dump.flatMap((secret) => secretRows(secret, Date.now())),
      undefined,
    );
    assert.deepEqual(
      text.split("\n").map((line) => line.split(/ {2,}/)[0]),
      ["RESOURCE NAME", "default", "ROOTCA", "browser-login://a", ""],
    );
    assert.match(
      text,
      /^RESOURCE NAME +TYPE +STATUS +VALID CERT +SERIAL NUMBER +NOT AFTER +NOT BEFORE +TRUST DOMAIN$/m,
    );
    assert.match(secretText("a.shop", [], undefined), /^a\.shop has no certificates/);
  });
});

describe("proxy-config rootca-compare", () => {
  const compare = (one: readonly SecretDump[], other: readonly SecretDump[]) =>
    compareTrust(readTrust("a.shop", one), readTrust("b.shop", other));

  test("the same roots", () => {
    const secrets = [chain(leaf.certificate, intermediate.certificate), roots(root.certificate)];
    const comparison = compare(secrets, secrets);
    assert.deepEqual([comparison.identical, comparison.compatible], [true, true]);
    assert.equal(
      comparisonText(comparison, undefined),
      "a.shop and b.shop trust the same root, and each one the other's certificate.\n",
    );
  });

  test("a change of root under way: different roots, and nobody is refused", () => {
    const comparison = compare(
      [chain(leaf.certificate, intermediate.certificate), roots(root.certificate)],
      [chain(leaf.certificate, intermediate.certificate), roots(root.certificate, otherRoot.certificate)],
    );
    assert.deepEqual([comparison.identical, comparison.compatible], [false, true]);
    assert.match(comparisonText(comparison, undefined), /CN=Other \(it alone\)/);
  });

  test("nothing in common", () => {
    const comparison = compare(
      [chain(leaf.certificate, intermediate.certificate), roots(root.certificate)],
      [chain(otherLeaf.certificate), roots(otherRoot.certificate)],
    );
    assert.deepEqual([comparison.identical, comparison.compatible], [false, false]);
    assert.match(comparisonText(comparison, undefined), /a\.shop, whose certificate the other refuses, trusts\n/);
  });

  test("a chain without its intermediate proves nothing, nor does none", () => {
    for (const secrets of [[chain(leaf.certificate)], []]) {
      const comparison = compare([...secrets, roots(root.certificate)], [roots(root.certificate)]);
      assert.deepEqual([comparison.identical, comparison.compatible], [true, false]);
    }
  });
});
