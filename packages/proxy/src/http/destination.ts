// Where a client meant its connection to go, before the kernel redirected it to the proxy.

export interface Destination {
  readonly ip: string;
  readonly port: number;
  /** `ip:port` */
  readonly text: string;
}

/** What says where a request or a connection is to go: `StreamInfo` has it. */
export interface DestinationFacts {
  readonly request: { readonly headers: { get(name: string): string | undefined } } | undefined;
  readonly listener: { readonly originalDestination: Destination | undefined } | undefined;
}
