// How a cluster is reached and who asks there: what a kubeconfig and a pod's own account come down to.

/** Who asks; several may be given at once, as kubectl sends them. */
export interface Credentials {
  /** Sent as `Authorization: Bearer`. */
  readonly token?: string;
  readonly basic?: { readonly username: string; readonly password: string };
  /** Shown when the connection is made; both or none. */
  readonly certificatePem?: string;
  readonly keyPem?: string;
}

export interface CredentialSource {
  /** Those to ask with now. Rejects with words that say where they should have come from. */
  current(): Promise<Credentials>;
  /** The API server answered 401 to them: what is kept is made anew the next time. */
  refused(credentials: Credentials): void;
}

/** Whom a request is made for, where that is another (kubeconfig's `as`). */
export interface Impersonation {
  readonly user: string;
  readonly uid?: string;
  readonly groups: readonly string[];
  readonly extra: Readonly<Record<string, readonly string[]>>;
}

export interface ClusterAccess {
  /** Without a slash at its end; a path is kept, as gateways in front of many clusters have one. */
  readonly server: string;
  /** Certificates that the API server's has to be of; the system's when missing. */
  readonly authorityPem?: string;
  /** What stands in the server's certificate in the place of its host name. */
  readonly serverName?: string;
  /** Any certificate will do (kubeconfig's `insecure-skip-tls-verify`). */
  readonly anyCertificate: boolean;
  /** A proxy that is asked for the connection (`http:` or `https:`). */
  readonly proxyUrl?: string;
  readonly credentials: CredentialSource;
  readonly impersonation?: Impersonation;
  /** Where objects are that are named without a namespace. */
  readonly namespace: string;
  /** Where all this comes from, for messages: a file with its context, or the pod's own account. */
  readonly origin: string;
}

/** Those that stay as they are. */
export function fixedCredentials(credentials: Credentials): CredentialSource {
  return { current: async () => credentials, refused: () => undefined };
}
