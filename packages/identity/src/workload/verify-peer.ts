// Who is at the other end of a TLS connection: a chain of certificates becomes a SPIFFE id, or a reason to refuse it
// (X509-SVID §5).
import type { SpiffeId } from "../spiffe-id.ts";
import { type Certificate, parseCertificate, type ParsedCertificates } from "../x509/certificate.ts";
import { type PathFailureReason, verifyPath } from "../x509/verify-path.ts";
import { identifyLeaf, type LeafRefusalReason, type LeafRules } from "./identify-peer.ts";

export type PeerRefusalReason =
  | PathFailureReason
  | LeafRefusalReason
  | "no-certificate"
  | "chain-too-long"
  | "self-signed";

export type VerifiedPeer =
  | {
      readonly ok: true;
      readonly spiffeId: SpiffeId;
      readonly leaf: Certificate;
      /** From the leaf to the root. */
      readonly path: readonly Certificate[];
    }
  | { readonly ok: false; readonly reason: PeerRefusalReason; readonly message: string };

export interface PeerVerification extends LeafRules {
  /** The peer's own certificate first, then what it sent beside it, in DER. */
  readonly chain: readonly Uint8Array[];
  readonly roots: readonly Certificate[];
  readonly nowMs: number;
}

const maxChainCertificates = 10;

export function verifyPeer(verification: PeerVerification): VerifiedPeer {
  const { roots, nowMs } = verification;
  const chain = parseChain(verification.chain);
  if (!chain.ok) return chain;
  const [leaf, ...intermediates] = chain.certificates;
  if (roots.some((root) => root.der.equals(leaf!.der)) || signsItself(leaf!)) {
    return refused("self-signed", "the peer's certificate is signed by itself");
  }
  const identity = identifyLeaf(leaf!, verification);
  if (!identity.ok) return identity;
  const verified = verifyPath({ certificate: leaf!, intermediates, roots, nowMs });
  return verified.ok ? { ok: true, spiffeId: identity.spiffeId, leaf: leaf!, path: verified.path } : verified;
}

function parseChain(chain: readonly Uint8Array[]): Extract<ParsedCertificates, { ok: true }> | Refusal {
  if (chain.length === 0) return refused("no-certificate", "the peer sent no certificate");
  if (chain.length > maxChainCertificates) {
    return refused("chain-too-long", `the peer sent ${chain.length} certificates, ${maxChainCertificates} are allowed`);
  }
  const certificates: Certificate[] = [];
  for (const [index, der] of chain.entries()) {
    const parsed = parseCertificate(der);
    if (!parsed.ok) return refused("malformed", `certificate ${index + 1} of the chain: ${parsed.message}`);
    certificates.push(parsed.certificate);
  }
  return { ok: true, certificates };
}

/** Equal names alone do not tell: a leaf's is empty, and so is the issuer's of what a leaf has signed. */
function signsItself(leaf: Certificate): boolean {
  return leaf.subjectDer.equals(leaf.issuerDer) && leaf.isSignedBy(leaf.publicKey);
}

type Refusal = Extract<VerifiedPeer, { ok: false }>;

function refused(reason: PeerRefusalReason, message: string): Refusal {
  return { ok: false, reason, message };
}
