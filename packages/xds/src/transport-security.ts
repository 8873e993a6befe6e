// TLS of the gRPC transport as its two ends are told of it. PEM in, verdicts out: who a certificate speaks for is
// decided by those who know the mesh's identities, not here.

/** Who is at the other end, as its certificate proves: `spiffe://<trustDomain>/ns/<namespace>/sa/<serviceAccount>`. */
export interface PeerIdentity {
  readonly trustDomain: string;
  readonly namespace: string;
  readonly serviceAccount: string;
  /** Of its certificate, in hexadecimal; missing where nobody asks for it. */
  readonly serial?: string;
}

export interface ServerTlsCredentials {
  readonly privateKeyPem: string;
  /** The leaf first. */
  readonly certChainPem: string;
  /** Told to clients, so that they know which certificate to show. */
  readonly clientRootsPem: string;
}

export type ClientVerdict =
  | {
      readonly ok: true;
      readonly identity: PeerIdentity;
      /**
       * Milliseconds since 1970, by the time of day: then its connection ends, and it comes again with what it has
       * renewed.
       */
      readonly validUntilMs: number;
    }
  /** `reason` is one word or a few with dashes, for a metric; `message` is for people. */
  | { readonly ok: false; readonly reason: string; readonly message: string };

export interface RefusedClient {
  readonly peer: string;
  readonly reason: string;
  readonly message: string;
}

export interface ServerTls {
  readonly credentials: ServerTlsCredentials;
  /**
   * The whole judgement of a client's chain (DER, the leaf first); the handshake has proved that the client holds the
   * leaf's key. A client that shows no certificate is not asked about: what it may call is the calls' own matter.
   */
  readonly verifyClient: (chain: readonly Uint8Array[]) => ClientVerdict;
  /** A connection that was closed in or right after its handshake. */
  readonly onRefused?: (refused: RefusedClient) => void;
}

export interface ClientTls {
  readonly rootsPem: string;
  /** The DNS name that the server's certificate must bear, whatever address it is reached at. */
  readonly serverName: string;
  /** Shown to the server; absent while the client has none. */
  readonly identity?: { readonly privateKeyPem: string; readonly certChainPem: string };
}

/**
 * Read anew for each connection, so that a renewed certificate and changed roots need no reconnection of streams that
 * live.
 */
export type ClientTlsSource = () => ClientTls;

/**
 * Every client that the platform starts, and gRPC in all languages, speaks TLS 1.3. Envoy offers no more than 1.2 to
 * its upstreams unless told: a cluster that reaches a control plane sets
 * `common_tls_context.tls_params.tls_maximum_protocol_version: TLSv1_3`.
 */
export const minTlsVersion = "TLSv1.3";
