// Who is at the other end of a TLS connection: a chain of certificates becomes a SPIFFE id, or a reason to refuse it (X509-SVID §5).
import { parseSpiffeId, type SpiffeId } from "../spiffe-id.ts";
import { oid } from "../der/object-identifiers.ts";
import { type Certificate, parseCertificate, type ParsedCertificates } from "../x509/certificate.ts";
import { type PathFailureReason, verifyPath } from "../x509/verify-path.ts";

export type PeerRefusalReason =
  | PathFailureReason
  | "no-certificate"
  | "malformed"
  | "chain-too-long"
  | "self-signed"
  | "leaf-is-authority"
  | "wrong-usage"
  | "no-spiffe-id"
  | "several-uris"
  | "wrong-trust-domain";

export type VerifiedPeer =
  | {
      readonly ok: true;
      readonly spiffeId: SpiffeId;
      readonly leaf: Certificate;
      /** From the leaf to the root. */
      readonly path: readonly Certificate[];
    }
  | { readonly ok: false; readonly reason: PeerRefusalReason; readonly message: string };

export interface PeerVerification {
  /** The peer's own certificate first, then what it sent beside it, in DER. */
  readonly chain: readonly Uint8Array[];
  readonly roots: readonly Certificate[];
  /** The mesh's own trust domain and its aliases; "any" for what is not a peer (one's own certificate). */
  readonly trustDomains: readonly string[] | "any";
  /** What the peer does on this connection. */
  readonly peerIs: "client" | "server";
  readonly nowMs: number;
}

const maxChainCertificates = 10;

export function verifyPeer(verification: PeerVerification): VerifiedPeer {
  const { roots, trustDomains, nowMs } = verification;
  const chain = parseChain(verification.chain);
  if (!chain.ok) return chain;
  const [leaf, ...intermediates] = chain.certificates;
  const unfit = leafRefusal(leaf!, verification);
  if (unfit !== undefined) return unfit;
  const identity = leafIdentity(leaf!);
  if (!identity.ok) return identity;
  // Whoever is of another trust domain is foreign by that alone, whichever authority vouches for it.
  if (trustDomains !== "any" && !trustDomains.includes(identity.spiffeId.trustDomain)) {
    const expected = trustDomains.join(", ");
    return refused(
      "wrong-trust-domain",
      `the peer is of the trust domain ${identity.spiffeId.trustDomain}, expected ${expected}`,
    );
  }
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

/** X509-SVID §4 and §5.2: a leaf signs no certificates, and serves the purpose that it is shown for. */
function leafRefusal(leaf: Certificate, { peerIs, roots }: PeerVerification): Refusal | undefined {
  if (roots.some((root) => root.der.equals(leaf.der)) || signsItself(leaf)) {
    return refused("self-signed", "the peer's certificate is signed by itself");
  }
  if (leaf.isCa || leaf.keyUsages?.has("keyCertSign") === true || leaf.keyUsages?.has("crlSign") === true) {
    return refused("leaf-is-authority", "the peer's certificate is that of an authority");
  }
  if (leaf.keyUsages !== undefined && !leaf.keyUsages.has("digitalSignature")) {
    return refused("wrong-usage", "the peer's certificate is not for digital signatures (keyUsage)");
  }
  const purpose = peerIs === "client" ? "clientAuth" : "serverAuth";
  const purposes = leaf.extendedKeyUsages;
  return purposes === undefined || purposes.has(oid[purpose]) || purposes.has(oid.anyExtendedKeyUsage)
    ? undefined
    : refused("wrong-usage", `the peer's certificate is not for a TLS ${peerIs} (no ${purpose} in extendedKeyUsage)`);
}

/** Equal names alone do not tell: a leaf's is empty, and so is the issuer's of what a leaf has signed. */
function signsItself(leaf: Certificate): boolean {
  return leaf.subjectDer.equals(leaf.issuerDer) && leaf.isSignedBy(leaf.publicKey);
}

/** Exactly one URI, and that one a workload's (X509-SVID §2); DNS names beside it are allowed and say nothing here. */
function leafIdentity(leaf: Certificate): { readonly ok: true; readonly spiffeId: SpiffeId } | Refusal {
  const uris = leaf.names.filter((name) => name.type === "uri").map((name) => name.value);
  if (uris.length > 1) return refused("several-uris", `the peer's certificate has ${uris.length} URIs, one is allowed`);
  const [uri] = uris;
  if (uri === undefined) return refused("no-spiffe-id", "the peer's certificate has no URI");
  const spiffeId = parseSpiffeId(uri);
  return spiffeId === undefined
    ? refused("no-spiffe-id", `${JSON.stringify(uri.slice(0, 300))} is no workload's SPIFFE id`)
    : { ok: true, spiffeId };
}

type Refusal = Extract<VerifiedPeer, { ok: false }>;

function refused(reason: PeerRefusalReason, message: string): Refusal {
  return { ok: false, reason, message };
}
