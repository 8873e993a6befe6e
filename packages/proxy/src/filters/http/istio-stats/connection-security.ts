// What Istio's metrics say of a connection's security: who was proved to be at its two ends.
import type { TlsInfo } from "../../../tls/tls-info.ts";

/** What the handshake has proved of both sides. */
export interface ConnectionSecurity {
  readonly policy: "mutual_tls" | "none" | "unknown";
  readonly sourcePrincipal: string;
  readonly destinationPrincipal: string;
}

export const noSecurity: ConnectionSecurity = {
  policy: "none",
  sourcePrincipal: "unknown",
  destinationPrincipal: "unknown",
};

/** As Istio's filter, but that a certificate must have been found good: one that is merely shown proves nothing. */
export function securityOf({ peer, local, peerIsValidated }: TlsInfo): ConnectionSecurity {
  return {
    policy: peerIsValidated ? "mutual_tls" : "none",
    sourcePrincipal: (peerIsValidated ? peer.uriSans[0] : undefined) ?? "unknown",
    destinationPrincipal: local.uriSans[0] ?? "unknown",
  };
}

/**
 * Of a connection to a host. What the host made of our certificate it alone knows, so that the policy is unknown here
 * (Istio).
 */
export function upstreamSecurityOf(tls: TlsInfo | undefined): ConnectionSecurity {
  return {
    policy: "unknown",
    sourcePrincipal: tls?.local.uriSans[0] ?? "unknown",
    destinationPrincipal: (tls?.peerIsValidated === true ? tls.peer.uriSans[0] : undefined) ?? "unknown",
  };
}
