// The public face of the identity package: who a workload is, how it proves it, and who vouches for it. Workload tokens
// have an entry of their own (`@tulle/identity/workload-token`), because sidecars carry tokens without reading them.
export { isSpiffeId, parseSpiffeId, type SpiffeId, spiffeIdText } from "./spiffe-id.ts";
export { trustDomainProblem } from "./trust-domain.ts";
export { writeSecretFile } from "./secret-file.ts";
export { generateKey } from "./keys/generate-key.ts";
export type { KeyAlgorithm } from "./keys/key-algorithm.ts";
export { parsePrivateKey, privateKeyPem } from "./keys/private-key.ts";
export { type Certificate, parseCertificate, parseCertificates } from "./x509/certificate.ts";
export { type VerifiedPath, verifyPath } from "./x509/verify-path.ts";
export { type ParsedRevocationLists, parseRevocationLists, type RevocationList } from "./x509/revocation-list.ts";
export { createCsr } from "./csr/create-csr.ts";
export { type CertificateRequest, type ParsedCsr, parseCsr } from "./csr/parse-csr.ts";
export { type JoinToken, joinTokenText, parseJoinToken, rootPin, secretHash } from "./token/join-token.ts";
export type { AuthorityMaterial } from "./authority/authority-material.ts";
export { type AuthorityOptions, createAuthority } from "./authority/create-authority.ts";
export {
  type AuthorityFileNames,
  type AuthorityPem,
  type AuthorityProblem,
  checkAuthority,
  type CheckedAuthority,
} from "./authority/check-authority.ts";
export { cacertsFiles, loadCacerts } from "./authority/load-cacerts.ts";
export { AuthorityFolder } from "./authority/authority-folder.ts";
export type { AuthorityStorage } from "./authority/authority-storage.ts";
export { authorityText, parseAuthority } from "./authority/authority-text.ts";
export {
  CertificateAuthority,
  type CertificateAuthorityOptions,
  type ServingCertificateRequest,
} from "./authority/certificate-authority.ts";
export { openAuthority, type OpenAuthorityOptions, type OpenedAuthority } from "./authority/open-authority.ts";
export type { AuthorityState, RotationTimes } from "./authority/root-rotation.ts";
export type { IssuedCertificate, SigningRefusal, SigningResult } from "./authority/sign-workload.ts";
export {
  createDevelopmentAuthority,
  type DevelopmentAuthority,
  developmentAuthorityText,
  issueDevelopmentCertificate,
  readDevelopmentAuthority,
} from "./authority/development-authority.ts";
export { certificateExpiry, type CertificateExpiry, type ExpiryLevel } from "./authority/certificate-expiry.ts";
export { type IdentifiedPeer, identifyPeer, type LeafRefusalReason, type LeafRules } from "./workload/identify-peer.ts";
export {
  type PeerRefusalReason,
  type PeerVerification,
  type VerifiedPeer,
  verifyPeer,
} from "./workload/verify-peer.ts";
export {
  checkWorkloadCertificate,
  type CheckedWorkloadCertificate,
  readWorkloadCertificate,
  type WorkloadCertificate,
  type WorkloadCertificateParts,
  workloadExpiry,
  writeWorkloadCertificate,
} from "./workload/workload-certificate.ts";
export {
  renewalDueMs,
  type RenewalEvent,
  type RenewalState,
  renewalTimeMs,
  startRenewal,
  stepRenewal,
} from "./workload/renewal.ts";
