// Where a gRPC service is and what goes along with each call, compiled (config.core.v3.GrpcService). How it is reached,
// its hosts, addresses and TLS, is the cluster's matter.

export interface GrpcTarget {
  readonly clusterName: string;
  readonly authority: string;
  /** Names in lower case. */
  readonly metadata: readonly (readonly [name: string, value: string])[];
  /** Of a message that comes, where the service sets a limit. */
  readonly maxMessageBytes: number | undefined;
}

/** Equal for targets whose streams can be one. */
export function grpcTargetKey({ clusterName, authority, metadata, maxMessageBytes }: GrpcTarget): string {
  return JSON.stringify([clusterName, authority, metadata, maxMessageBytes]);
}
