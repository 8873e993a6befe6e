// Certificates for tests of TLS, good ones and ones that should not exist: of now, because OpenSSL and Envoy read the
// real clock.
import { createHash, type KeyObject, sign, X509Certificate } from "node:crypto";
import { type AuthorityMaterial, createAuthority, generateKey, privateKeyPem } from "@tulle/identity";
import { plannedLeaf } from "@tulle/identity/testing";

const hourMs = 3_600_000;

export interface IssuedIdentity {
  readonly chainPem: string;
  readonly keyPem: string;
  readonly leaf: X509Certificate;
  /** As verify_certificate_hash and verify_certificate_spki want them. */
  readonly hash: string;
  readonly spki: string;
}

export interface IssueOptions {
  readonly uri?: string;
  readonly dns?: readonly string[];
  readonly notBeforeMs?: number;
  readonly notAfterMs?: number;
}

export interface TestAuthority {
  readonly rootPem: string;
  /** The certificate of the signing authority: an intermediate below the root. */
  readonly intermediatePem: string;
  issue(options?: IssueOptions): Promise<IssuedIdentity>;
  /** A list of the signing authority. */
  revocationList(revoked: readonly X509Certificate[]): string;
}

export async function testAuthority(trustDomain = "cluster.local"): Promise<TestAuthority> {
  const material = await createAuthority({ trustDomain, nowMs: Date.now() - hourMs });
  const chainPem = material.chain.map(({ pem }) => pem).join("");
  return {
    rootPem: material.roots[0]!.pem,
    intermediatePem: material.certificate.pem,
    issue: async (options = {}) => {
      const key = await generateKey();
      const leaf = await plannedLeaf({
        issuer: material,
        key,
        names: [
          { type: "uri", value: options.uri ?? `spiffe://${trustDomain}/ns/shop/sa/catalog` },
          ...(options.dns ?? []).map((value) => ({ type: "dns" as const, value })),
        ],
        notBeforeMs: options.notBeforeMs ?? Date.now() - hourMs,
        notAfterMs: options.notAfterMs ?? Date.now() + hourMs,
      });
      return identity(leaf.pem, leaf.pem + chainPem, key);
    },
    revocationList: (revoked) => revocationListPem(material, revoked),
  };
}

/** A leaf that has signed itself. */
export async function selfSigned(uri: string): Promise<IssuedIdentity> {
  const key = await generateKey();
  const { certificate } = await createAuthority({
    trustDomain: "self.test",
    signer: "root",
    nowMs: Date.now() - hourMs,
  });
  const leaf = await plannedLeaf({
    issuer: {
      certificate: { ...certificate, subjectDer: Buffer.from("300f310d300b06035504030c0473656c66", "hex") },
      key,
    },
    key,
    extensions: [],
    subject: "self",
    names: [{ type: "uri", value: uri }],
    notBeforeMs: Date.now() - hourMs,
    notAfterMs: Date.now() + hourMs,
  });
  return identity(leaf.pem, leaf.pem, key);
}

function identity(leafPem: string, chainPem: string, key: KeyObject): IssuedIdentity {
  const leaf = new X509Certificate(leafPem);
  const spki = leaf.publicKey.export({ type: "spki", format: "der" });
  return {
    chainPem,
    keyPem: privateKeyPem(key),
    leaf,
    hash: createHash("sha256").update(leaf.raw).digest("hex"),
    spki: createHash("sha256").update(spki).digest("base64"),
  };
}

function der(tag: number, ...content: readonly Uint8Array[]): Buffer {
  const body = Buffer.concat(content);
  const length =
    body.length < 0x80
      ? Buffer.from([body.length])
      : body.length < 0x100
        ? Buffer.from([0x81, body.length])
        : Buffer.from([0x82, body.length >> 8, body.length & 0xff]);
  return Buffer.concat([Buffer.from([tag]), length, body]);
}

function utcTime(atMs: number): Buffer {
  return der(0x17, Buffer.from(`${new Date(atMs).toISOString().slice(2, 19).replaceAll(/[-:T]/g, "")}Z`));
}

/** RFC 5280 §5.1, without extensions. */
function revocationListPem(issuer: AuthorityMaterial, revoked: readonly X509Certificate[]): string {
  const ecdsaWithSha256 = der(0x30, Buffer.from("06082a8648ce3d040302", "hex"));
  const entries = revoked.map(({ serialNumber }) => {
    const serial = Buffer.from(serialNumber, "hex");
    const padded = serial[0]! >= 0x80 ? Buffer.concat([Buffer.from([0]), serial]) : serial;
    return der(0x30, der(0x02, padded), utcTime(Date.now() - hourMs));
  });
  const list = der(
    0x30,
    der(0x02, Buffer.from([1])),
    ecdsaWithSha256,
    issuer.certificate.subjectDer,
    utcTime(Date.now() - hourMs),
    utcTime(Date.now() + hourMs),
    ...(entries.length === 0 ? [] : [der(0x30, ...entries)]),
    // cRLNumber, which RFC 5280 asks for.
    der(0xa0, der(0x30, der(0x30, Buffer.from("0603551d14", "hex"), der(0x04, der(0x02, Buffer.from([1])))))),
  );
  const signature = sign("sha256", list, issuer.key);
  const whole = der(0x30, list, ecdsaWithSha256, der(0x03, Buffer.concat([Buffer.from([0]), signature])));
  return `-----BEGIN X509 CRL-----\n${whole.toString("base64").replaceAll(/.{64}/g, "$&\n")}\n-----END X509 CRL-----\n`;
}
