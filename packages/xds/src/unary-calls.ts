// Unary gRPC calls of opaque messages: what a server answers beside its streams.
import type { PeerIdentity } from "./transport-security.ts";

/** gRPC's status codes by name (grpc/doc/statuscodes.md), those that are used here. */
export type GrpcStatusName =
  | "CANCELLED"
  | "DEADLINE_EXCEEDED"
  | "INTERNAL"
  | "INVALID_ARGUMENT"
  | "PERMISSION_DENIED"
  | "RESOURCE_EXHAUSTED"
  | "UNAUTHENTICATED"
  | "UNAVAILABLE"
  | "UNIMPLEMENTED"
  | "UNKNOWN";

export interface UnaryCall {
  readonly requestBytes: Uint8Array;
  /** The peer's address as gRPC gives it. */
  readonly peer: string;
  /** Of a verified client, DER, the leaf first; empty when it showed none or the server speaks no TLS. */
  readonly peerCertificates: readonly Uint8Array[];
  readonly peerIdentity: PeerIdentity | undefined;
  /** All values of a metadata key, which is in lower case. */
  metadata(name: string): readonly string[];
}

export type UnaryAnswer =
  | { readonly ok: true; readonly bytes: Uint8Array }
  | { readonly ok: false; readonly status: GrpcStatusName; readonly details: string };

/**
 * By the method's path, `/package.Service/Method`. A handler that rejects is answered with INTERNAL, without its words.
 */
export type UnaryHandlers = Readonly<Record<string, (call: UnaryCall) => Promise<UnaryAnswer>>>;
