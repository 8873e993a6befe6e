// The part of a chain's verification that OpenSSL's answer in a handshake leaves open: chains that may have expired,
// revocation of the leaf alone, limits on their length; and the answer in BoringSSL's words, which Envoy logs.
import type { X509Certificate } from "node:crypto";
import { type Certificate, parseCertificate, verifyPath } from "@tulle/identity";
import { leafRevocationProblem } from "./leaf-revocation.ts";
import type { ValidationContext } from "./secret.ts";

/** X509_verify_cert_error_string of BoringSSL, by OpenSSL's names. */
const words: Readonly<Record<string, string>> = {
  UNABLE_TO_GET_ISSUER_CERT: "unable to get issuer certificate",
  UNABLE_TO_GET_CRL: "unable to get certificate CRL",
  CERT_SIGNATURE_FAILURE: "certificate signature failure",
  CRL_SIGNATURE_FAILURE: "CRL signature failure",
  CERT_NOT_YET_VALID: "certificate is not yet valid",
  CERT_HAS_EXPIRED: "certificate has expired",
  CRL_NOT_YET_VALID: "CRL is not yet valid",
  CRL_HAS_EXPIRED: "CRL has expired",
  DEPTH_ZERO_SELF_SIGNED_CERT: "self signed certificate",
  SELF_SIGNED_CERT_IN_CHAIN: "self signed certificate in certificate chain",
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: "unable to get local issuer certificate",
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: "unable to get local issuer certificate",
  CERT_CHAIN_TOO_LONG: "certificate chain too long",
  CERT_REVOKED: "certificate revoked",
  INVALID_CA: "invalid CA certificate",
  PATH_LENGTH_EXCEEDED: "path length constraint exceeded",
  INVALID_PURPOSE: "unsupported certificate purpose",
  CERT_UNTRUSTED: "certificate not trusted",
  CERT_REJECTED: "certificate rejected",
  // Node's name of all that it has none for, such as an issuer that may sign nothing.
  UNSPECIFIED: "certificate rejected",
};

const listErrors: ReadonlySet<string> = new Set([
  "UNABLE_TO_GET_CRL",
  "CRL_SIGNATURE_FAILURE",
  "CRL_NOT_YET_VALID",
  "CRL_HAS_EXPIRED",
  "CERT_REVOKED",
]);
const timeErrors: ReadonlySet<string> = new Set(["CERT_HAS_EXPIRED", "CERT_NOT_YET_VALID"]);
const openSslMaxDepth = 100;
const maxShownCertificates = 16;

/** Why the chain leads to nothing trusted; undefined when it does. */
export function chainProblem(
  leaf: X509Certificate,
  openSslError: string | undefined,
  { peerIs, nowMs }: { readonly peerIs: "client" | "server"; readonly nowMs: number },
  context: ValidationContext,
): string | undefined {
  const isForgiven = context.allowsExpired && openSslError !== undefined && timeErrors.has(openSslError);
  if (openSslError !== undefined && !isForgiven) return problemText(leaf, openSslError, nowMs, context);
  // OpenSSL says the last error of several: behind a time there may stand that nothing is trusted at all.
  if (isForgiven || context.maxVerifyDepth < openSslMaxDepth) {
    const problem = pathProblem(leaf, isForgiven, peerIs, nowMs, context);
    if (problem !== undefined) return problem;
  }
  if (context.crl === undefined || !(context.checksLeafRevocationOnly || isForgiven)) return undefined;
  const code = leafRevocationProblem(leaf, context, nowMs);
  return code === undefined ? undefined : errorText(code, 0);
}

function errorText(code: string, depth: number): string {
  const about = listErrors.has(code) ? "certificate revocation check against provided CRLs failed: " : "";
  return `X509_verify_cert: certificate verification error at depth ${depth}: ${about}${words[code] ?? code}`;
}

function problemText(leaf: X509Certificate, code: string, nowMs: number, context: ValidationContext): string {
  if (!listErrors.has(code) || context.crl === undefined) return errorText(code, depthOf(leaf, code, nowMs));
  // OpenSSL went on to the authorities above and says what it found there; Envoy stops at the first.
  const first = leafRevocationProblem(leaf, context, nowMs);
  return first === undefined ? errorText(code, 1) : errorText(first, 0);
}

function chainOf(leaf: X509Certificate): X509Certificate[] {
  const chain = [leaf];
  let next = leaf.issuerCertificate;
  while (next !== undefined && chain.length < maxShownCertificates) {
    const { raw } = next;
    // A root names itself as its issuer.
    if (chain.some((certificate) => certificate.raw.equals(raw))) break;
    chain.push(next);
    next = next.issuerCertificate;
  }
  return chain;
}

/** Where in the chain the error is; Node does not say it. */
function depthOf(leaf: X509Certificate, code: string, nowMs: number): number {
  if (code === "DEPTH_ZERO_SELF_SIGNED_CERT" || code === "UNABLE_TO_VERIFY_LEAF_SIGNATURE") return 0;
  const chain = chainOf(leaf);
  if (timeErrors.has(code)) {
    const isWrong = (certificate: X509Certificate): boolean =>
      code === "CERT_HAS_EXPIRED"
        ? nowMs >= certificate.validToDate.getTime()
        : nowMs < certificate.validFromDate.getTime();
    return Math.max(0, chain.findLastIndex(isWrong));
  }
  if (code === "UNABLE_TO_GET_ISSUER_CERT_LOCALLY" || code === "SELF_SIGNED_CERT_IN_CHAIN") return chain.length - 1;
  return 0;
}

function pathProblem(
  leaf: X509Certificate,
  ignoresTime: boolean,
  peerIs: "client" | "server",
  nowMs: number,
  context: ValidationContext,
): string | undefined {
  const [certificate, ...intermediates] = chainOf(leaf).map((each) => read(each, ignoresTime));
  const roots = context.trustedCa!.certificates.map((each) => read(each, ignoresTime));
  if (certificate === undefined) return errorText("CERT_REJECTED", 0);
  const purpose = peerIs === "client" ? "1.3.6.1.5.5.7.3.2" : "1.3.6.1.5.5.7.3.1";
  const usages = certificate.extendedKeyUsages;
  if (usages !== undefined && !usages.has(purpose)) return errorText("INVALID_PURPOSE", 0);
  const result = verifyPath({
    certificate,
    intermediates: intermediates.filter((each) => each !== undefined),
    roots: roots.filter((each) => each !== undefined),
    nowMs,
  });
  if (!result.ok) return errorText("UNABLE_TO_GET_ISSUER_CERT_LOCALLY", intermediates.length);
  const between = result.path.length - 2;
  return between > context.maxVerifyDepth ? errorText("CERT_CHAIN_TOO_LONG", context.maxVerifyDepth + 1) : undefined;
}

function read(certificate: X509Certificate, ignoresTime: boolean): Certificate | undefined {
  const parsed = parseCertificate(certificate.raw);
  if (!parsed.ok) return undefined;
  return ignoresTime ? { ...parsed.certificate, notBeforeMs: -Infinity, notAfterMs: Infinity } : parsed.certificate;
}
