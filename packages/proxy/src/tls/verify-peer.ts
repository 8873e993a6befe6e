// Whether the certificate that a peer has shown is good (Envoy: DefaultCertValidator). OpenSSL has looked at chain,
// signatures and times in the handshake; names, hashes and what OpenSSL cannot be told are looked at here, on both
// sides of TLS.
import { createHash, type X509Certificate } from "node:crypto";
import type { TLSSocket } from "node:tls";
import { matchesDnsName, peerNames } from "./peer-names.ts";
import type { ValidationContext } from "./secret.ts";
import { chainProblem } from "./verify-chain.ts";

export interface ShownCertificate {
  /** The leaf; undefined when the peer has shown none. */
  readonly certificate: X509Certificate | undefined;
  /** OpenSSL's code, such as `CERT_HAS_EXPIRED`; undefined = it found the chain good. */
  readonly chainError: string | undefined;
}

export interface PeerRules {
  /** What the peer does on this connection. */
  readonly peerIs: "client" | "server";
  /** A server may do without the client's certificate (require_client_certificate). */
  readonly requiresCertificate: boolean;
  /** auto_sni_san_validation: takes the place of the name matches. */
  readonly expectedDnsName?: string | undefined;
  readonly nowMs: number;
}

export type PeerFailureKind = "no_certificate" | "chain" | "name" | "hash";

export type PeerOutcome =
  | {
      readonly ok: true;
      readonly certificate: X509Certificate | undefined;
      /** False: nothing was asked, no certificate was shown, or an untrusted one is accepted. */
      readonly validated: boolean;
    }
  | {
      readonly ok: false;
      readonly kind: PeerFailureKind;
      /** In Envoy's words: `verify cert failed: …`. */
      readonly message: string;
    };

/**
 * What a socket knows of its peer once its handshake is done; with `rejectUnauthorized: false`, or it would be gone.
 */
export function shownCertificate(socket: TLSSocket): ShownCertificate {
  const error = socket.authorizationError as unknown as string | Error | null;
  const chainError = error === null || error === undefined ? undefined : typeof error === "string" ? error : error.name;
  return { certificate: socket.getPeerX509Certificate(), chainError };
}

export function verifyPeer(
  shown: ShownCertificate,
  rules: PeerRules,
  context: ValidationContext | undefined,
): PeerOutcome {
  const { certificate } = shown;
  if (certificate === undefined) {
    return rules.requiresCertificate
      ? { ok: false, kind: "no_certificate", message: "PEER_DID_NOT_RETURN_A_CERTIFICATE" }
      : { ok: true, certificate, validated: false };
  }
  if (context === undefined) return { ok: true, certificate, validated: false };
  const failure = certificateFailure(certificate, shown.chainError, rules, context);
  if (failure === undefined) {
    const asksNothing =
      context.trustedCa === undefined &&
      context.nameMatches.length === 0 &&
      context.certificateHashes.size === 0 &&
      context.spkiHashes.size === 0;
    return { ok: true, certificate, validated: !asksNothing };
  }
  return context.acceptsUntrusted ? { ok: true, certificate, validated: false } : failure;
}

type Failure = Extract<PeerOutcome, { ok: false }>;

function certificateFailure(
  certificate: X509Certificate,
  chainError: string | undefined,
  rules: PeerRules,
  context: ValidationContext,
): Failure | undefined {
  const problem = context.trustedCa === undefined ? undefined : chainProblem(certificate, chainError, rules, context);
  if (problem !== undefined) return { ok: false, kind: "chain", message: `verify cert failed: ${problem}` };
  return nameFailure(certificate, rules, context) ?? hashFailure(certificate, context);
}

function nameFailure(certificate: X509Certificate, rules: PeerRules, context: ValidationContext): Failure | undefined {
  const { expectedDnsName } = rules;
  if (context.nameMatches.length === 0 && expectedDnsName === undefined) return undefined;
  const names = peerNames(certificate);
  const fits =
    expectedDnsName === undefined
      ? context.nameMatches.some((match) =>
          names.some(({ type, value }) => type === match.type && match.matches(value)),
        )
      : names.some(({ type, value }) => type === "dns" && matchesDnsName(value, expectedDnsName));
  if (fits) return undefined;
  const list = names.map(({ value }) => value).join(", ");
  return { ok: false, kind: "name", message: `verify cert failed: SAN matcher, certificate SANs are [${list}]` };
}

/** One of either list is enough. */
function hashFailure(certificate: X509Certificate, context: ValidationContext): Failure | undefined {
  const { certificateHashes, spkiHashes } = context;
  if (certificateHashes.size === 0 && spkiHashes.size === 0) return undefined;
  if (certificateHashes.size > 0 && certificateHashes.has(sha256(certificate.raw, "hex"))) return undefined;
  if (spkiHashes.size > 0) {
    const spki = certificate.publicKey.export({ type: "spki", format: "der" });
    if (spkiHashes.has(sha256(spki, "base64"))) return undefined;
  }
  return { ok: false, kind: "hash", message: "verify cert failed: cert hash and spki" };
}

function sha256(bytes: Buffer, encoding: "hex" | "base64"): string {
  return createHash("sha256").update(bytes).digest(encoding);
}
