// The authority of one developer's machine: it vouches for `localhost` and for nothing else, so that a person can tell
// a browser to believe it without giving anybody who steals its key the rest of the web.
import { createPublicKey, type KeyObject } from "node:crypto";
import { explicit, implicit, sequence } from "../der/der-writer.ts";
import { oid } from "../der/object-identifiers.ts";
import { generateKey } from "../keys/generate-key.ts";
import { parsePrivateKey, privateKeyPem } from "../keys/private-key.ts";
import { type Certificate, parseCertificates } from "../x509/certificate.ts";
import { createAuthorityCertificate } from "./create-authority-certificate.ts";
import { issueLeaf } from "./sign-workload.ts";

const dayMs = 24 * 60 * 60 * 1000;

/** As long as the browsers' own rules let an authority of a person live without a thought. */
const authorityMs = 3650 * dayMs;
/** Short of every limit that browsers have for certificates of servers. */
const developmentCertificateMs = 90 * dayMs;

export interface DevelopmentAuthority {
  readonly certificate: Certificate;
  readonly key: KeyObject;
}

/** `owner` tells people whose it is, in their browser's list. */
export async function createDevelopmentAuthority(owner: string, nowMs: number): Promise<DevelopmentAuthority> {
  const key = await generateKey("P-256");
  const certificate = createAuthorityCertificate({
    organization: "Tulle development",
    commonName: `localhost, made for ${owner}`,
    key,
    pathLength: 0,
    lifetimeMs: authorityMs,
    nowMs,
    furtherExtensions: [localhostOnly()],
  });
  return { certificate, key };
}

/** The names of this machine as itself; RFC 6761 §6.3 keeps `localhost` and all below it for that. */
const addresses = [
  { address: [127, 0, 0, 0], mask: [255, 0, 0, 0] },
  { address: [...Array.from({ length: 15 }, () => 0), 1], mask: Array.from({ length: 16 }, () => 255) },
] as const;

/** RFC 5280 §4.2.1.10: names outside of these are refused by whoever verifies. */
function localhostOnly(): { readonly oid: string; readonly critical: boolean; readonly value: Buffer } {
  const subtrees = [
    sequence(implicit(2, Buffer.from("localhost", "latin1"))),
    ...addresses.map(({ address, mask }) => sequence(implicit(7, Uint8Array.of(...address, ...mask)))),
  ];
  return { oid: oid.nameConstraints, critical: true, value: sequence(explicit(0, ...subtrees)) };
}

/** A certificate for `localhost`, `127.0.0.1` and `::1` with a key of its own, all PEM. */
export async function issueDevelopmentCertificate(
  { certificate, key: authorityKey }: DevelopmentAuthority,
  nowMs: number,
): Promise<{ readonly chainPem: string; readonly keyPem: string; readonly notAfterMs: number }> {
  const key = await generateKey("P-256");
  const issued = issueLeaf(
    { certificate, key: authorityKey, chain: [], roots: [certificate] },
    {
      publicKey: key,
      commonName: "localhost",
      names: [
        { type: "dns", value: "localhost" },
        { type: "ip", value: "127.0.0.1" },
        { type: "ip", value: "::1" },
      ],
      nowMs,
      ttlMs: developmentCertificateMs,
    },
  );
  return { chainPem: issued.chainPem, keyPem: privateKeyPem(key), notAfterMs: issued.certificate.notAfterMs };
}

/** Key and certificate as one text: a file of its own, of which there is never one half. */
export function developmentAuthorityText({ certificate, key }: DevelopmentAuthority): string {
  return `${certificate.pem}${privateKeyPem(key)}`;
}

/** Undefined for a text that is no such thing, or whose key is another's. */
export function readDevelopmentAuthority(text: string): DevelopmentAuthority | undefined {
  const end = "-----END CERTIFICATE-----";
  const at = text.indexOf(end);
  if (at < 0) return undefined;
  const parsed = parseCertificates(`${text.slice(0, at)}${end}\n`);
  const key = parsePrivateKey(text.slice(at + end.length));
  if (!parsed.ok || key === undefined || parsed.certificates.length !== 1) return undefined;
  const certificate = parsed.certificates[0]!;
  const isOwn = certificate.isCa && certificate.publicKey.equals(createPublicKey(key));
  return isOwn ? { certificate, key } : undefined;
}
