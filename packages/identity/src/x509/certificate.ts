// A certificate read strictly (RFC 5280 §4.1), with what decides about trust taken out of it. OpenSSL keeps what it is best
// at, the key and the signature; names, usages and limits are read here because Node shows them only as text, or not at all.
import { type KeyObject, X509Certificate } from "node:crypto";
import {
  DerError,
  DerReader,
  integerOctets,
  smallIntegerValue,
  timeValue,
  type DerElement,
} from "../der/der-reader.ts";
import { oid } from "../der/object-identifiers.ts";
import { parsePem, pemText } from "../pem.ts";
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

export interface Certificate {
  readonly der: Buffer;
  readonly pem: string;
  /** Hexadecimal, two digits an octet, as OpenSSL prints it. */
  readonly serial: string;
  /** For people: `O=cluster.local, CN=…`; names are compared by their bytes. */
  readonly subject: string;
  readonly subjectDer: Buffer;
  readonly subjectIsEmpty: boolean;
  readonly issuerDer: Buffer;
  readonly notBeforeMs: number;
  /** From this second on it counts as expired. */
  readonly notAfterMs: number;
  readonly publicKey: KeyObject;
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
  /** Whether this certificate was signed with the given public key. */
  readonly isSignedBy: (issuer: KeyObject) => boolean;
}

export type ParsedCertificates =
  | { readonly ok: true; readonly certificates: readonly Certificate[] }
  | { readonly ok: false; readonly message: string };

/** Far above any real certificate; what is larger is not even looked at. */
const maxCertificateBytes = 64 * 1024;
/** More than any real chain or bundle of roots has. */
const maxCertificates = 256;

/** All certificates of a PEM text, at least one. */
export function parseCertificates(pem: string): ParsedCertificates {
  const blocks = parsePem(pem);
  if (blocks === undefined) return { ok: false, message: "the text is not well-formed PEM" };
  if (blocks.length === 0) return { ok: false, message: "there is no certificate in it" };
  if (blocks.length > maxCertificates)
    return { ok: false, message: `it holds more than ${maxCertificates} certificates` };
  const certificates: Certificate[] = [];
  for (const [index, block] of blocks.entries()) {
    if (block.label !== "CERTIFICATE")
      return { ok: false, message: `block ${index + 1} is a ${block.label}, no certificate` };
    const parsed = parseCertificate(block.der);
    if (!parsed.ok) return { ok: false, message: `certificate ${index + 1}: ${parsed.message}` };
    certificates.push(parsed.certificate);
  }
  return { ok: true, certificates };
}

/** One certificate in DER. */
export function parseCertificate(
  der: Uint8Array,
): { readonly ok: true; readonly certificate: Certificate } | { readonly ok: false; readonly message: string } {
  if (der.length > maxCertificateBytes) return { ok: false, message: `it is larger than ${maxCertificateBytes} bytes` };
  try {
    return { ok: true, certificate: readCertificate(Buffer.from(der)) };
  } catch (error) {
    // OpenSSL's own refusals come as errors with a code; all else is a fault of this code and goes up.
    if (error instanceof DerError || (error instanceof Error && "code" in error)) {
      return { ok: false, message: error.message };
    }
    throw error;
  }
}

function readCertificate(der: Buffer): Certificate {
  const outer = new DerReader(der);
  const parts = outer.enter(0x30);
  outer.end();
  const tbs = parts.enter(0x30);
  const signatureAlgorithm = parts.read(0x30);
  parts.read(0x03);
  parts.end();

  const version = tbs.optional(0xa0);
  if (version === undefined || smallIntegerValue(new DerReader(version.content).read(0x02)) !== 2) {
    throw new DerError("it is not of X.509 version 3");
  }
  const serial = integerOctets(tbs.read(0x02));
  if (!tbs.read(0x30).whole.equals(signatureAlgorithm.whole)) throw new DerError("it names two signature algorithms");
  const issuer = tbs.read(0x30);
  const validity = tbs.enter(0x30);
  const [notBeforeMs, notAfterMs] = [timeValue(validity.any()), timeValue(validity.any())];
  validity.end();
  const subject = tbs.read(0x30);
  tbs.read(0x30);
  tbs.optional(0x81);
  tbs.optional(0x82);
  const extensions = readExtensions(tbs.optional(0xa3));
  tbs.end();

  const native = new X509Certificate(der);
  return Object.freeze({
    der,
    pem: pemText("CERTIFICATE", der),
    serial: (serial[0] === 0 && serial.length > 1 ? serial.subarray(1) : serial).toString("hex").toUpperCase(),
    // Node answers undefined for an empty subject.
    subject: (native.subject as string | undefined)?.replaceAll("\n", ", ") ?? "",
    subjectDer: subject.whole,
    subjectIsEmpty: subject.content.length === 0,
    issuerDer: issuer.whole,
    notBeforeMs,
    notAfterMs,
    publicKey: native.publicKey,
    signatureAlgorithm: parseSignatureAlgorithm(signatureAlgorithm),
    ...extensions,
    isSignedBy: (key: KeyObject) => native.verify(key),
  });
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
  const all = found === undefined ? [] : decodeExtensions(new DerReader(found.content).enter(0x30));
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
