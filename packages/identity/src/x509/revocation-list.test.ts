// Revocation lists as OpenSSL makes them.
import assert from "node:assert/strict";
import { X509Certificate } from "node:crypto";
import { readFile } from "node:fs/promises";
import path from "node:path";
import { type TestContext, test } from "node:test";
import { createAuthority } from "../authority/create-authority.ts";
import { privateKeyPem } from "../keys/private-key.ts";
import { openssl } from "../testing/openssl.ts";
import { parsePem, pemText } from "../pem.ts";
import { parseRevocationLists } from "./revocation-list.ts";

const serial = "1122AB";
const atMs = Date.parse("2030-06-01T12:00:00Z");
const authority = async () => createAuthority({ trustDomain: "cluster.local", signer: "root", nowMs: atMs });

/** A list of the authority with one serial number; `extensions` as OpenSSL's configuration writes them. */
async function listOf(
  t: TestContext,
  { certificate, key }: Awaited<ReturnType<typeof authority>>,
  extensions = "",
): Promise<string> {
  const { folder, run, file } = await openssl(t);
  await file("ca.pem", certificate.pem);
  await file("ca.key", privateKeyPem(key));
  await file("index.txt", `R\t350101000000Z\t300101000000Z,keyCompromise\t${serial}\tunknown\t/CN=leaf\n`);
  await file("number", "01\n");
  const section = "[ca]\ndefault_ca=d\n[d]\ndatabase=index.txt\ncrlnumber=number\ndefault_md=sha256\n";
  await file("ca.cnf", `${section}crl_extensions=x\n[x]\n${extensions}`);
  const keys = ["-cert", "ca.pem", "-keyfile", "ca.key"];
  const times = ["-crl_lastupdate", "20300601000000Z", "-crl_nextupdate", "20300701000000Z"];
  await run("ca", "-config", "ca.cnf", "-gencrl", ...keys, ...times, "-out", "list.pem");
  return readFile(path.join(folder, "list.pem"), "utf8");
}

test("times, serial numbers and the issuer of a list", async (t) => {
  const [own, other] = [await authority(), await authority()];
  const parsed = parseRevocationLists(await listOf(t, own));
  assert.ok(parsed.ok);
  const [list, ...more] = parsed.lists;
  assert.deepEqual(more, []);
  assert.deepEqual([...list!.serials], [serial.toLowerCase()]);
  assert.equal(list!.thisUpdateMs, Date.parse("2030-06-01T00:00:00Z"));
  assert.equal(list!.nextUpdateMs, Date.parse("2030-07-01T00:00:00Z"));
  assert.equal(list!.isIssuedBy(new X509Certificate(own.certificate.der)), true);
  assert.equal(list!.isIssuedBy(new X509Certificate(other.certificate.der)), false);
});

test("a list whose signature was broken has no issuer", async (t) => {
  const own = await authority();
  const [block] = parsePem(await listOf(t, own))!;
  const der = Buffer.from(block!.der);
  der[der.length - 1]! ^= 1;
  const parsed = parseRevocationLists(pemText("X509 CRL", der));
  assert.ok(parsed.ok);
  assert.equal(parsed.lists[0]!.isIssuedBy(new X509Certificate(own.certificate.der)), false);
});

test("a list that says only a part is refused", async (t) => {
  const partial = await listOf(t, await authority(), "issuingDistributionPoint=critical,@i\n[i]\nonlyCA=TRUE\n");
  assert.deepEqual(parseRevocationLists(partial), {
    ok: false,
    message: "revocation list 1: the extension 2.5.29.28 is not understood",
  });
});

for (const { name, text, message } of [
  { name: "no PEM", text: "", message: "there is no revocation list in it" },
  { name: "an open block", text: "-----BEGIN X509 CRL-----\nAAAA\n", message: "the text is not well-formed PEM" },
  {
    name: "other bytes",
    text: pemText("X509 CRL", Buffer.from([0x30, 0])),
    message: "revocation list 1: expected tag 0x30, found the end",
  },
]) {
  test(`${name} is no list`, () => {
    assert.deepEqual(parseRevocationLists(text), { ok: false, message });
  });
}
