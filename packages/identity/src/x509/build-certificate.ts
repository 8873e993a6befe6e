// Puts a certificate together and signs it (RFC 5280 §4.1); what goes into it is decided by the authority.
import { type KeyObject, randomBytes } from "node:crypto";
import { bitString, explicit, integer, sequence, smallInteger, time } from "../der/der-writer.ts";
import { publicKeyInfo } from "../keys/private-key.ts";
import { encodeExtension, type Extension } from "./extensions.ts";
import { signatureAlgorithm, signBytes } from "./signature.ts";

export interface CertificateContents {
  /** Distinguished names in DER. */
  readonly subject: Uint8Array;
  readonly issuer: Uint8Array;
  readonly notBeforeMs: number;
  readonly notAfterMs: number;
  readonly publicKey: KeyObject;
  readonly extensions: readonly Extension[];
}

/** The certificate in DER, with a serial number of 128 random bits, signed with the issuer's private key. */
export function buildCertificate(contents: CertificateContents, issuerKey: KeyObject): Buffer {
  const algorithm = signatureAlgorithm(issuerKey);
  const tbs = sequence(
    explicit(0, smallInteger(2)),
    integer(serialNumber()),
    algorithm,
    contents.issuer,
    sequence(time(contents.notBeforeMs), time(contents.notAfterMs)),
    contents.subject,
    publicKeyInfo(contents.publicKey),
    explicit(3, sequence(...contents.extensions.map(encodeExtension))),
  );
  return sequence(tbs, algorithm, bitString(signBytes(tbs, issuerKey)));
}

/** RFC 5280 §4.1.2.2 forbids zero, which would come up once in 2¹²⁸ times. */
function serialNumber(): Buffer {
  const octets = randomBytes(16);
  return octets.every((octet) => octet === 0) ? Buffer.from([1]) : octets;
}
