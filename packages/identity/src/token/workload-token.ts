// What a workload token says: the claims of a Kubernetes service-account token, so that both platforms are read alike.

export interface WorkloadIdentityClaims {
  readonly namespace: string;
  readonly serviceAccount: string;
  readonly pod: { readonly name: string; readonly uid: string };
}

export type TokenVerdict =
  | { readonly ok: true; readonly identity: WorkloadIdentityClaims }
  | {
      readonly ok: false;
      /** Who could say cannot be asked now. */
      readonly isUnavailable?: true;
      /** Holds nothing of the token: it may be logged. */
      readonly message: string;
    };

/** Says whose a token is, for the platform that hands them out. Never rejects. */
export type TokenJudge = (token: string) => Promise<TokenVerdict>;

/** Only ES256 is ever signed or believed: neither `none` nor an HMAC under the public key has a chance. */
export const workloadTokenAlgorithm = "ES256";

/** A token that lives longer was not made here, whatever its signature. */
export const maxTokenLifetimeMs = 24 * 3_600_000;

/** Istio's audience for requests to the authority. */
export const authorityAudience = "istio-ca";

/** Who hands out tokens on a platform without a token service of its own; Kubernetes names another issuer. */
export const localTokenIssuer = "https://tulle.local";

/** Where that platform keeps its key: a name in the state directory, which the authority reads too. */
export const workloadTokenKeyFile = "workload-token-key.pem";

/** `system:serviceaccount:<namespace>:<service account>`, Kubernetes' name for the pair. */
export function serviceAccountSubject(identity: Pick<WorkloadIdentityClaims, "namespace" | "serviceAccount">): string {
  return `system:serviceaccount:${identity.namespace}:${identity.serviceAccount}`;
}
