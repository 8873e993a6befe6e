// What a secret resource holds once it has been read (extensions.transport_sockets.tls.v3.Secret): a certificate with
// its key, rules for the peer's certificate, or bytes for a filter. Immutable; a rotation replaces the whole.
import type { X509Certificate } from "node:crypto";
import type { PeerNameMatch } from "./peer-names.ts";

export type Secret = TlsCertificate | ValidationContext | GenericSecret;

export interface TlsCertificate {
  readonly type: "tls_certificate";
  /** Leaf first. */
  readonly chainPem: string;
  readonly keyPem: string;
  readonly chain: readonly X509Certificate[];
  /** `ec`, `rsa`, `ed25519`: OpenSSL serves one certificate of each kind beside another. */
  readonly keyType: string;
  /** DNS names of the leaf, for the choice by SNI. */
  readonly dnsNames: readonly string[];
  /** SHA-256 over chain and key: equal material shares what is made of it. */
  readonly digest: string;
}

/** Envoy: CertificateValidationContext. */
export interface ValidationContext {
  readonly type: "validation_context";
  /** Undefined: the chain is not looked at, only hashes and names. */
  readonly trustedCa: TrustedCa | undefined;
  /** SHA-256 of the leaf's SubjectPublicKeyInfo, base64; one of these or of `certificateHashes` must fit. */
  readonly spkiHashes: ReadonlySet<string>;
  /** SHA-256 of the leaf, lower-case hexadecimal. */
  readonly certificateHashes: ReadonlySet<string>;
  /** One of them must fit one of the leaf's names; none = every name will do. */
  readonly nameMatches: readonly PeerNameMatch[];
  /** Undefined: nothing is revoked. */
  readonly crl: RevocationList | undefined;
  /** crl is asked for the leaf alone (only_verify_leaf_cert_crl). */
  readonly checksLeafRevocationOnly: boolean;
  readonly allowsExpired: boolean;
  /** trust_chain_verification: ACCEPT_UNTRUSTED. The outcome is known, and the connection goes on. */
  readonly acceptsUntrusted: boolean;
  /** Certificates between the leaf and the root. */
  readonly maxVerifyDepth: number;
}

export interface TrustedCa {
  readonly pem: string;
  readonly certificates: readonly X509Certificate[];
  readonly digest: string;
}

export interface RevocationList {
  readonly pem: string;
  readonly digest: string;
}

export interface GenericSecret {
  readonly type: "generic_secret";
  readonly secret: Buffer;
}
