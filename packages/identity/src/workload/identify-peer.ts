// Whose certificate a leaf is: the part of a peer's verification that TLS libraries do not do. By itself it is for the
// hot path, after a handshake that OpenSSL has found good, where walking the chain once more would cost a quarter of
// the handshake.
import { DerError } from "../der/der-reader.ts";
import { oid } from "../der/object-identifiers.ts";
import { parseSpiffeId, type SpiffeId } from "../spiffe-id.ts";
import { type CertificateFields, readCertificateFields } from "../x509/certificate-fields.ts";

export type LeafRefusalReason =
  | "malformed"
  | "leaf-is-authority"
  | "wrong-usage"
  | "no-spiffe-id"
  | "several-uris"
  | "wrong-trust-domain"
  | "unenforced-extension";

export type IdentifiedPeer =
  | { readonly ok: true; readonly spiffeId: SpiffeId; readonly serial: string }
  | { readonly ok: false; readonly reason: LeafRefusalReason; readonly message: string };

export interface LeafRules {
  /** The mesh's own trust domain and its aliases; "any" for what is not a peer (one's own certificate). */
  readonly trustDomains: readonly string[] | "any";
  /** What the peer does on this connection. */
  readonly peerIs: "client" | "server";
}

/**
 * The identity in the leaf (DER) of a connection whose chain, signatures and times the TLS library has verified against
 * the mesh's roots (`socket.authorized`). Everything else is for `verifyPeer`.
 */
export function identifyPeer(leaf: Uint8Array, rules: LeafRules): IdentifiedPeer {
  try {
    return identifyLeaf(readCertificateFields(Buffer.from(leaf.buffer, leaf.byteOffset, leaf.byteLength)), rules);
  } catch (error) {
    if (error instanceof DerError) return refused("malformed", `the peer's certificate: ${error.message}`);
    throw error;
  }
}

export function identifyLeaf(leaf: CertificateFields, rules: LeafRules): IdentifiedPeer {
  const unfit = leafRefusal(leaf, rules);
  if (unfit !== undefined) return unfit;
  const identity = leafIdentity(leaf);
  if (!identity.ok) return identity;
  const { trustDomain } = identity.spiffeId;
  // Whoever is of another trust domain is foreign by that alone, whichever authority vouches for it.
  return rules.trustDomains === "any" || rules.trustDomains.includes(trustDomain)
    ? identity
    : refused(
        "wrong-trust-domain",
        `the peer is of the trust domain ${trustDomain}, expected ${rules.trustDomains.join(", ")}`,
      );
}

/** X509-SVID §4 and §5.2: a leaf signs no certificates, and serves the purpose that it is shown for. */
function leafRefusal(leaf: CertificateFields, { peerIs }: LeafRules): Refusal | undefined {
  if (leaf.isCa || leaf.keyUsages?.has("keyCertSign") === true || leaf.keyUsages?.has("crlSign") === true) {
    return refused("leaf-is-authority", "the peer's certificate is that of an authority");
  }
  if (leaf.keyUsages !== undefined && !leaf.keyUsages.has("digitalSignature")) {
    return refused("wrong-usage", "the peer's certificate is not for digital signatures (keyUsage)");
  }
  const purpose = peerIs === "client" ? "clientAuth" : "serverAuth";
  const purposes = leaf.extendedKeyUsages;
  return purposes === undefined || purposes.has(oid[purpose]) || purposes.has(oid.anyExtendedKeyUsage)
    ? limitRefusal(leaf)
    : refused("wrong-usage", `the peer's certificate is not for a TLS ${peerIs} (no ${purpose} in extendedKeyUsage)`);
}

function limitRefusal(leaf: CertificateFields): Refusal | undefined {
  const [extension] = leaf.unenforcedExtensions;
  return extension === undefined
    ? undefined
    : refused(
        "unenforced-extension",
        `the peer's certificate carries the extension ${extension}, which is not enforced here`,
      );
}

/** Exactly one URI, and that one a workload's (X509-SVID §2); DNS names beside it are allowed and say nothing here. */
function leafIdentity(leaf: CertificateFields): IdentifiedPeer {
  const uris = leaf.names.filter((name) => name.type === "uri").map((name) => name.value);
  if (uris.length > 1) return refused("several-uris", `the peer's certificate has ${uris.length} URIs, one is allowed`);
  const [uri] = uris;
  if (uri === undefined) return refused("no-spiffe-id", "the peer's certificate has no URI");
  const spiffeId = parseSpiffeId(uri);
  return spiffeId === undefined
    ? refused("no-spiffe-id", `${JSON.stringify(uri.slice(0, 300))} is no workload's SPIFFE id`)
    : { ok: true, spiffeId, serial: leaf.serial };
}

type Refusal = Extract<IdentifiedPeer, { ok: false }>;

function refused(reason: LeafRefusalReason, message: string): Refusal {
  return { ok: false, reason, message };
}
