// Revocation of a leaf by a list of its issuer, where OpenSSL cannot be asked: it looks for a list of every authority
// of the chain, or for none.
import type { X509Certificate } from "node:crypto";
import { parseRevocationLists, type RevocationList as ParsedList } from "@tulle/identity";
import type { RevocationList, ValidationContext } from "./secret.ts";

const parsedLists = new WeakMap<RevocationList, readonly ParsedList[]>();

/** OpenSSL's name of what is wrong; undefined when a good list of the issuer does not name the leaf. */
export function leafRevocationProblem(
  leaf: X509Certificate,
  context: ValidationContext,
  nowMs: number,
): string | undefined {
  const crl = context.crl!;
  let lists = parsedLists.get(crl);
  if (lists === undefined) {
    const parsed = parseRevocationLists(crl.pem);
    lists = parsed.ok ? parsed.lists : [];
    parsedLists.set(crl, lists);
  }
  const issuers = [leaf.issuerCertificate, ...context.trustedCa!.certificates].filter(
    (issuer) => issuer !== undefined && leaf.checkIssued(issuer),
  );
  let problem = "UNABLE_TO_GET_CRL";
  for (const list of lists) {
    const issuer = issuers.find((candidate) => list.isIssuedBy(candidate!));
    if (issuer === undefined) continue;
    if (nowMs < list.thisUpdateMs) problem = "CRL_NOT_YET_VALID";
    else if (list.nextUpdateMs !== undefined && nowMs >= list.nextUpdateMs) problem = "CRL_HAS_EXPIRED";
    else return list.serials.has(leaf.serialNumber.toLowerCase()) ? "CERT_REVOKED" : undefined;
  }
  return problem;
}
