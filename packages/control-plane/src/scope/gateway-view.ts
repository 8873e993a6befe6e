// What a gateway does with connections before there is any request in them: which certificate is shown for which name,
// and which connections pass through as they are. Plain data, so that its key tells whether a listener has to be made
// anew.
import type { GatewayServerTls, TlsVersion } from "../snapshot/mesh-snapshot.ts";

/** A port of the pod whose servers end TLS, or pass connections on. */
export interface GatewayListener {
  readonly targetPort: number;
  /** No two have a server name in common: Envoy would refuse the listener. */
  readonly chains: readonly GatewayChain[];
}

interface ChainMatch {
  readonly name: string;
  /** Names that the client asks for; any, or none, when empty. */
  readonly serverNames: readonly string[];
}

/** HTTPS that ends here. */
export interface GatewayHttpChain extends ChainMatch {
  readonly type: "http";
  readonly routeName: string;
  readonly tls: GatewayChainTls;
}

export interface GatewayTcpChain extends ChainMatch {
  readonly type: "tcp";
  /** Missing where the bytes pass as they come. */
  readonly tls?: GatewayChainTls;
  /** Only clients that speak as proxies of a mesh do are let through. */
  readonly isAutoPassthrough?: true;
  readonly destinations: readonly ConnectionDestination[];
}

export type GatewayChain = GatewayHttpChain | GatewayTcpChain;

export interface ConnectionDestination {
  readonly cluster: string;
  readonly weight: number;
  /** The cluster has no hosts of its own: the one that the connection's server name names is at that port. */
  readonly namedAtPort?: number;
}

/** Settings of a server that ends TLS. */
export type GatewayChainTls = Omit<GatewayServerTls, "httpsRedirect" | "mode"> &
  (
    | { readonly mode: "SIMPLE" | "MUTUAL" | "OPTIONAL_MUTUAL" }
    | { readonly mode: "ISTIO_MUTUAL"; readonly trustDomain: string; readonly minimumTls?: TlsVersion }
  );
