// Finds the way from a certificate to a trusted root (RFC 5280 §6), for peers in a handshake and for authorities that
// are brought along.
import { keyProblem } from "../keys/key-algorithm.ts";
import type { Certificate } from "./certificate.ts";
import { allowsSigningCertificates } from "./certificate-fields.ts";
import { isTrustedCertificateSignature } from "./signature.ts";

export type PathFailureReason =
  | "foreign-authority"
  | "expired"
  | "not-yet-valid"
  | "not-an-authority"
  | "path-too-long"
  | "weak-cryptography"
  | "unenforced-extension";

export type VerifiedPath =
  | {
      readonly ok: true;
      /** From the certificate to the root, both included. */
      readonly path: readonly Certificate[];
    }
  | { readonly ok: false; readonly reason: PathFailureReason; readonly message: string };

type Failure = Extract<VerifiedPath, { ok: false }>;

export interface PathRequest {
  readonly certificate: Certificate;
  /** What the peer sent beside it, in any order. */
  readonly intermediates: readonly Certificate[];
  readonly roots: readonly Certificate[];
  readonly nowMs: number;
}

/** A peer may send many look-alikes to keep us busy: this many signatures are verified at most. */
const maxSignatures = 24;
/** Authorities on a path, the root included. */
const maxAuthorities = 8;

/** What is wrong with the certificate by itself, whoever issued it, is said before the search begins. */
export function verifyPath(request: PathRequest): VerifiedPath {
  return (
    certificateFailure(request.certificate, request.nowMs) ??
    search(request, [request.certificate], { signatures: maxSignatures })
  );
}

function search(request: PathRequest, path: readonly Certificate[], left: { signatures: number }): VerifiedPath {
  const last = path.at(-1)!;
  if (request.roots.some((root) => root.der.equals(last.der))) return { ok: true, path };
  let failure = foreign(last);
  for (const issuer of [...request.roots, ...request.intermediates]) {
    if (path.includes(issuer) || !mayHaveIssued(issuer, last)) continue;
    if (left.signatures === 0) return failure;
    left.signatures -= 1;
    if (!last.isSignedBy(issuer.publicKey)) continue;
    const result = issuerFailure(issuer, path, request.nowMs) ?? search(request, [...path, issuer], left);
    if (result.ok) return result;
    // A reason found on the way says more than that there is no way.
    if (failure.reason === "foreign-authority") failure = result;
  }
  return failure;
}

/** By names and key identifiers, before the costly look at the signature. */
function mayHaveIssued(issuer: Certificate, subject: Certificate): boolean {
  if (!issuer.subjectDer.equals(subject.issuerDer)) return false;
  const [wanted, has] = [subject.authorityKeyIdentifier, issuer.subjectKeyIdentifier];
  return wanted === undefined || has === undefined || wanted.equals(has);
}

function issuerFailure(issuer: Certificate, below: readonly Certificate[], nowMs: number): Failure | undefined {
  const broken = certificateFailure(issuer, nowMs) ?? authorityFailure(issuer);
  if (broken !== undefined) return broken;
  const authoritiesBelow = below.filter((certificate) => certificate.isCa).length;
  if (authoritiesBelow > (issuer.pathLength ?? Infinity) || authoritiesBelow >= maxAuthorities) {
    return failed(
      "path-too-long",
      issuer,
      `allows fewer authorities below it than the ${authoritiesBelow} of this chain`,
    );
  }
  return undefined;
}

/** Why this certificate may not sign others; undefined when it may. */
export function authorityFailure(certificate: Certificate): Failure | undefined {
  if (!certificate.isCa) return failed("not-an-authority", certificate, "is no CA (basicConstraints)");
  return allowsSigningCertificates(certificate.keyUsages)
    ? undefined
    : failed("not-an-authority", certificate, "may not sign certificates (keyUsage without keyCertSign)");
}

function certificateFailure(certificate: Certificate, nowMs: number): Failure | undefined {
  if (nowMs < certificate.notBeforeMs) {
    return failed("not-yet-valid", certificate, `is not valid before ${isoTime(certificate.notBeforeMs)}`);
  }
  // RFC 5280 §4.1.2.5 counts the second of notAfter in, OpenSSL does not; a handshake would fail on OpenSSL's word
  // anyway.
  if (nowMs >= certificate.notAfterMs) {
    return failed("expired", certificate, `expired at ${isoTime(certificate.notAfterMs)}`);
  }
  const weakness = keyProblem(certificate.publicKey);
  if (weakness !== undefined) return failed("weak-cryptography", certificate, `has no usable key: ${weakness}`);
  if (!isTrustedCertificateSignature(certificate.signatureAlgorithm)) {
    return failed(
      "weak-cryptography",
      certificate,
      `is signed by ${certificate.signatureAlgorithm}, which is not trusted`,
    );
  }
  const [extension] = certificate.unenforcedExtensions;
  return extension === undefined
    ? undefined
    : failed("unenforced-extension", certificate, `carries the extension ${extension}, which is not enforced here`);
}

function foreign(certificate: Certificate): Failure {
  return failed("foreign-authority", certificate, "leads to no trusted root");
}

function failed(reason: PathFailureReason, certificate: Certificate, what: string): Failure {
  const subject = certificate.subject === "" ? "" : ` (${certificate.subject})`;
  return { ok: false, reason, message: `the certificate ${certificate.serial}${subject} ${what}` };
}

function isoTime(atMs: number): string {
  return new Date(atMs).toISOString().replace(".000Z", "Z");
}
