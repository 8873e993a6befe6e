// What whoever asked has in hand of a request that the proxy sends by itself, in HTTP or in gRPC.

export interface AsyncCall {
  /** Gives the request up; nothing is heard of it any more. */
  cancel(): void;
}
