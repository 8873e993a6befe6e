// A certificate as the mesh works with it: its fields as they are read here, its key and signature as OpenSSL reads
// them.
import { type KeyObject, X509Certificate } from "node:crypto";
import { DerError } from "../der/der-reader.ts";
import { parsePem, pemText } from "../pem.ts";
import { allowsSigningCertificates, type CertificateFields, readCertificateFields } from "./certificate-fields.ts";

export interface Certificate extends CertificateFields {
  readonly der: Buffer;
  readonly pem: string;
  /** For people: `O=cluster.local, CN=…`; names are compared by their bytes. */
  readonly subject: string;
  readonly publicKey: KeyObject;
  /** Whether this certificate was signed with the given public key. */
  readonly isSignedBy: (issuer: KeyObject) => boolean;
}

export type ParsedCertificates =
  | { readonly ok: true; readonly certificates: readonly Certificate[] }
  | { readonly ok: false; readonly message: string };

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
  // A copy: what is verified must not change under the hands of whoever owns the bytes.
  const bytes = Buffer.from(der);
  try {
    const fields = readCertificateFields(bytes);
    const native = new X509Certificate(bytes);
    const mayIssue = fields.isCa && allowsSigningCertificates(fields.keyUsages);
    // OpenSSL reads extensions that nothing here asks for, and believes no authority with a damaged one.
    if (mayIssue && !native.ca) return { ok: false, message: "an extension of the authority is damaged" };
    return { ok: true, certificate: Object.freeze({ ...fields, ...readKey(bytes, native) }) };
  } catch (error) {
    // OpenSSL's own refusals come as errors with a code; all else is a fault of this code and goes up.
    if (error instanceof DerError || (error instanceof Error && "code" in error)) {
      return { ok: false, message: error.message };
    }
    throw error;
  }
}

function readKey(der: Buffer, native: X509Certificate): Omit<Certificate, keyof CertificateFields> {
  return {
    der,
    pem: pemText("CERTIFICATE", der),
    // Node answers undefined for an empty subject.
    subject: (native.subject as string | undefined)?.replaceAll("\n", ", ") ?? "",
    publicKey: native.publicKey,
    isSignedBy: (key: KeyObject) => native.verify(key),
  };
}
