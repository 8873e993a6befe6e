// What the agent asks of a certificate authority, however it is reached.
import type { WorkloadCertificate } from "@tulle/identity";

/** How the caller proves who it is. */
export type SigningCredentials =
  | { readonly kind: "token"; readonly token: string }
  /** The certificate that is to be renewed, by mutual TLS. */
  | { readonly kind: "certificate"; readonly certificate: WorkloadCertificate };

export interface SigningRequest {
  readonly csrPem: string;
  readonly credentials: SigningCredentials;
  /** What the authority is verified with, in PEM. */
  readonly rootsPem: string;
}

export type SigningAnswer =
  /** The leaf with its intermediates, and all roots of the mesh. */
  | { readonly ok: true; readonly chainPem: string; readonly rootsPem: string }
  | {
      readonly ok: false;
      /**
       * - `credentials`: the authority believes the token or the certificate no more. - `other`: anything else, such as
       *   an authority that cannot be reached.
       */
      readonly kind: "credentials" | "other";
      readonly reason: string;
    };

/** Asks once; never rejects. */
export type SignCertificate = (request: SigningRequest) => Promise<SigningAnswer>;
