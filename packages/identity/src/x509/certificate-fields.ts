// What a certificate says about names, usages and limits (RFC 5280 §4.1), read strictly and without a look at its key
// or signature: Node shows these only as text, or not at all.
import {
  DerError,
  type DerElement,
  DerReader,
  integerOctets,
  smallIntegerValue,
  timeValue,
} from "../der/der-reader.ts";
import { oid } from "../der/object-identifiers.ts";
import {
  decodeAuthorityKeyIdentifier,
  decodeBasicConstraints,
  decodeExtendedKeyUsage,
  decodeExtensions,
  decodeKeyUsage,
  decodeSubjectKeyIdentifier,
  type Extension,
  type KeyUsage,
} from "./extensions.ts";
import { parseSignatureAlgorithm } from "./signature.ts";
import { decodeNames, type SubjectAlternativeName } from "./subject-alternative-names.ts";

export interface CertificateFields {
  /** Hexadecimal, two digits an octet, as OpenSSL prints it. */
  readonly serial: string;
  readonly subjectDer: Buffer;
  readonly subjectIsEmpty: boolean;
  readonly issuerDer: Buffer;
  readonly notBeforeMs: number;
  /** From this second on it counts as expired. */
  readonly notAfterMs: number;
  readonly signatureAlgorithm: string;
  readonly names: readonly SubjectAlternativeName[];
  readonly isCa: boolean;
  /** How many authorities may stand between it and a leaf; undefined is any number. */
  readonly pathLength: number | undefined;
  /** Undefined when the certificate does not limit them. */
  readonly keyUsages: ReadonlySet<KeyUsage> | undefined;
  /** Object identifiers; undefined when the certificate does not limit them. */
  readonly extendedKeyUsages: ReadonlySet<string> | undefined;
  readonly subjectKeyIdentifier: Buffer | undefined;
  readonly authorityKeyIdentifier: Buffer | undefined;
  /** Limits that this code does not enforce; a chain with one of them is refused (RFC 5280 §4.2). */
  readonly unenforcedExtensions: readonly string[];
}

/** Without key usages nothing is ruled out (RFC 5280 §4.2.1.3). */
export function allowsSigningCertificates(keyUsages: CertificateFields["keyUsages"]): boolean {
  return keyUsages === undefined || keyUsages.has("keyCertSign");
}

/** Far above any real certificate; what is larger is not even looked at. */
const maxCertificateBytes = 64 * 1024;

/** The fields share the bytes they are read from. @throws {DerError} */
export function readCertificateFields(der: Buffer): CertificateFields {
  if (der.length > maxCertificateBytes) throw new DerError(`it is larger than ${maxCertificateBytes} bytes`);
  const outer = new DerReader(der);
  const parts = outer.enter(0x30);
  outer.end();
  const tbs = parts.enter(0x30);
  const signatureAlgorithm = parts.read(0x30);
  parts.read(0x03);
  parts.end();

  const version = new DerReader(tbs.optional(0xa0)?.content ?? new Uint8Array());
  if (version.done || smallIntegerValue(version.read(0x02)) !== 2) throw new DerError("it is not of X.509 version 3");
  version.end();
  const serial = integerOctets(tbs.read(0x02));
  if (!tbs.read(0x30).whole.equals(signatureAlgorithm.whole)) throw new DerError("it names two signature algorithms");
  const issuer = tbs.read(0x30);
  const validity = tbs.enter(0x30);
  const [notBeforeMs, notAfterMs] = [timeValue(validity.any()), timeValue(validity.any())];
  validity.end();
  const subject = tbs.read(0x30);
  // Key and unique identifiers: the one is OpenSSL's to read, the others nobody uses.
  tbs.read(0x30);
  tbs.optional(0x81);
  tbs.optional(0x82);
  const extensions = readExtensions(tbs.optional(0xa3));
  tbs.end();
  return {
    serial: (serial[0] === 0 && serial.length > 1 ? serial.subarray(1) : serial).toString("hex").toUpperCase(),
    subjectDer: subject.whole,
    subjectIsEmpty: subject.content.length === 0,
    issuerDer: issuer.whole,
    notBeforeMs,
    notAfterMs,
    signatureAlgorithm: parseSignatureAlgorithm(signatureAlgorithm),
    ...extensions,
  };
}

const known: ReadonlySet<string> = new Set([
  oid.basicConstraints,
  oid.keyUsage,
  oid.extendedKeyUsage,
  oid.subjectAlternativeName,
  oid.subjectKeyIdentifier,
  oid.authorityKeyIdentifier,
]);

function readExtensions(found: DerElement | undefined) {
  const outer = new DerReader(found?.content ?? new Uint8Array());
  const all = outer.done ? [] : decodeExtensions(outer.enter(0x30));
  outer.end();
  const value = <T>(identifier: string, decode: (value: Uint8Array) => T): T | undefined => {
    const extension = all.find((one) => one.oid === identifier);
    return extension === undefined ? undefined : decode(extension.value);
  };
  const constraints = value(oid.basicConstraints, decodeBasicConstraints);
  return {
    names: value(oid.subjectAlternativeName, decodeNames) ?? [],
    isCa: constraints?.ca ?? false,
    pathLength: constraints?.pathLength,
    keyUsages: value(oid.keyUsage, decodeKeyUsage),
    extendedKeyUsages: value(oid.extendedKeyUsage, decodeExtendedKeyUsage),
    subjectKeyIdentifier: value(oid.subjectKeyIdentifier, decodeSubjectKeyIdentifier),
    authorityKeyIdentifier: value(oid.authorityKeyIdentifier, decodeAuthorityKeyIdentifier),
    unenforcedExtensions: all.filter(limitsMore).map((extension) => extension.oid),
  };
}

/** Name constraints limit even where somebody forgot to mark them as critical. */
function limitsMore(extension: Extension): boolean {
  return extension.oid === oid.nameConstraints || (extension.critical && !known.has(extension.oid));
}
