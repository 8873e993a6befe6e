// What one proxy depends on, and nothing else. A view has three sections: `clusters` and `routes` are the same for many
// proxies (all sidecars of a namespace), `own` is this proxy's. Each has a key made of its content, so that equal
// sections are translated once, and each is all that its translation sees.
import type { GatewayTopology, MutualTlsMode, PathNormalization, PortProtocol, TrafficPolicy } from "@tulle/config";
import type { MeshAuthorizer } from "../snapshot/authorizers.ts";
import type { LoginProvider, MeshBrowserLogin } from "../snapshot/browser-logins.ts";
import type { MeshAuthorizationPolicy, MeshJwtRule } from "../snapshot/mesh-snapshot.ts";
import type { MeshService, MeshSubset, MeshVirtualService, TlsVersion } from "../snapshot/mesh-snapshot.ts";
import type { NetworkGateways } from "../snapshot/networks.ts";
import type { ConnectionDestination, GatewayListener } from "./gateway-view.ts";
import type { Keyed } from "./keyed.ts";
import type { InterceptionMode } from "./proxy.ts";
import type { WorkloadTelemetry } from "./workload-telemetry.ts";

/** The DestinationRules that hold for a Service, seen from one namespace, merged into one. */
export interface EffectiveRule {
  readonly name: string;
  readonly namespace: string;
  readonly trafficPolicy?: TrafficPolicy;
  readonly subsets: readonly MeshSubset[];
}

export interface ScopedService extends MeshService {
  readonly rule?: EffectiveRule;
}

/** How endpoints in other networks than the proxy's are reached. */
export interface ForeignNetworks {
  readonly own: string;
  readonly gateways: NetworkGateways;
}

/** What all clusters of a view have in common. */
interface WorkloadClusters {
  /** See `MeshSnapshot.trustDomain`. */
  readonly trustDomain?: string;
  readonly minimumTls?: TlsVersion;
  /**
   * See `Proxy.withoutCertificate`: nothing may name a secret, and nothing is sent in the clear to who refuses that.
   */
  readonly withoutCertificate?: true;
  /** Missing where all endpoints are reached directly: no network has gateways, or nobody knows the proxy's. */
  readonly networks?: ForeignNetworks;
  /** The proxy's, `region/zone/subzone`; missing where nobody knows it, or no cluster prefers what is near. */
  readonly locality?: string;
  readonly services: readonly ScopedService[];
}

/** Where the sidecars of a namespace can send. */
export interface SidecarClusters extends WorkloadClusters {
  readonly type: "sidecar";
  /** The kernel redirects connections to them; missing = applications name their proxy. */
  readonly isCaptured?: true;
}

/** How the sidecars of a namespace route. */
export interface SidecarRoutes {
  readonly type: "sidecar";
  /** Missing where applications name their proxy. With it there is a table for each port, in that one's place. */
  readonly captured?: CapturedOutbound;
  readonly namespace: string;
  readonly services: readonly MeshService[];
  /** Those for the mesh, each with the hosts that no earlier one has taken. */
  readonly virtualServices: readonly MeshVirtualService[];
  /** See `MeshSnapshot.registryOnly`. */
  readonly registryOnly?: true;
  /**
   * Clusters that a proxy without a certificate cannot reach: their requests are answered with the reason. Missing
   * without any.
   */
  readonly refusedClusters?: readonly string[];
}

/** One listener of a gateway workload, with every Gateway server that shares it. */
export interface GatewayPort {
  /** Of a server that ends TLS, which has a route table of its own; the others of a port share theirs. */
  readonly routeName?: string;
  /** What the pod listens on. */
  readonly targetPort: number;
  /** What the Gateway resource calls it; part of virtual host names. */
  readonly port: number;
  readonly servers: readonly GatewayPortServer[];
}

export interface GatewayPortServer {
  /** `namespace/name` of the Gateway. */
  readonly gateway: string;
  readonly hosts: readonly string[];
  /** Missing where it is not asked for. */
  readonly httpsRedirect?: true;
}

/** Where the gateway workloads with equal labels can send: only Services that a route leads to. */
export interface GatewayClusters extends WorkloadClusters {
  readonly type: "router";
  /**
   * Hosts of Services that clients of other meshes reach by their TLS alone (AUTO_PASSTHROUGH); missing without any.
   */
  readonly autoPassthrough?: readonly string[];
  /** Of sign-ins whose token endpoint is outside the mesh; missing without any. */
  readonly tokenProviders?: readonly LoginProvider[];
}

/** How the gateway workloads with equal labels route. */
export interface GatewayRoutes {
  readonly type: "router";
  readonly ports: readonly GatewayPort[];
  /** Those bound to one of the Gateways. */
  readonly virtualServices: readonly MeshVirtualService[];
  /** Only those that a route leads to. */
  readonly services: readonly MeshService[];
  /** Sign-ins at its Gateways; missing without any. */
  readonly logins?: readonly MeshBrowserLogin[];
  /** As of sidecars. */
  readonly refusedClusters?: readonly string[];
}

/** A port of the workload itself that Services lead to. */
export interface InboundPort {
  readonly targetPort: number;
  readonly protocol: PortProtocol;
  readonly servicePort: number;
  readonly service: { readonly name: string; readonly namespace: string; readonly hostname: string };
  /** Missing without an authority, and where it is DISABLE: then the port takes plain text alone. */
  readonly mutualTls?: PortMutualTls;
}

export interface PortMutualTls {
  readonly mode: Exclude<MutualTlsMode, "DISABLE">;
  readonly trustDomain: string;
  readonly minimumTls?: TlsVersion;
}

/** The policies that hold for a workload. */
export interface WorkloadSecurity {
  /** By issuer. */
  readonly jwtRules: readonly ScopedJwtRule[];
  readonly policies: readonly MeshAuthorizationPolicy[];
  /** Those that the policies name, as far as there are such; missing without any. */
  readonly authorizers?: readonly MeshAuthorizer[];
  /** Of a gateway: sign-ins at its Gateways; missing without any. */
  readonly logins?: readonly MeshBrowserLogin[];
}

/** Without where its keys come from: the same keys from another place change nothing for a proxy. */
export type ScopedJwtRule = Omit<MeshJwtRule, "location" | "fetchTimeoutMs">;

/** Connections to one address of a Service. */
export interface CapturedConnections {
  readonly address: string;
  readonly port: number;
  /** Table of its requests, where the first bytes tell what a connection carries. */
  readonly routeName?: string;
  /** Missing without any. */
  readonly byServerName?: readonly {
    readonly serverNames: readonly string[];
    readonly destinations: readonly ConnectionDestination[];
  }[];
  readonly destinations: readonly ConnectionDestination[];
}

/** A port that connections find by the addresses of its Service's pods alone; those are in `podConnections`. */
export interface CapturedPods extends Omit<CapturedConnections, "address"> {
  readonly hostname: string;
}

/** Connections to a range of addresses, and to none that a Service has. */
export interface CapturedRange {
  readonly port: number;
  /** `10.0.0.0/8`; missing for any address. */
  readonly range?: string;
  /** Names that TLS asks for; any, or none, when empty. */
  readonly serverNames: readonly string[];
  readonly destinations: readonly ConnectionDestination[];
}

export interface CapturedOutbound {
  /** See `MeshSnapshot.registryOnly`. */
  readonly registryOnly?: true;
  readonly httpPorts: readonly number[];
  readonly connections: readonly CapturedConnections[];
  /** No two of a port are for the same; missing without any. */
  readonly ranges?: readonly CapturedRange[];
  /** Missing without any. */
  readonly pods?: readonly CapturedPods[];
}

/** Of a sidecar to which the kernel redirects its workload's connections. */
export interface CapturedSidecar {
  /** `0.0.0.0`, `::` or both. */
  readonly anyAddresses: readonly string[];
  readonly outbound: CapturedOutbound;
  /** Missing without any. */
  readonly podConnections?: readonly CapturedConnections[];
  /** Ports that no Service leads to: those of which a policy speaks, and (`port` missing) all others. */
  readonly otherPorts: readonly { readonly port?: number; readonly mutualTls?: PortMutualTls }[];
  /** Those under STRICT of a proxy without a certificate: nobody is let in. */
  readonly refusedPorts: readonly number[];
}

export interface SidecarOwn {
  readonly type: "sidecar";
  readonly address: string;
  readonly appAddress: string;
  readonly interceptionMode: InterceptionMode;
  readonly inbound: readonly InboundPort[];
  /** Missing in interceptionMode NONE. */
  readonly captured?: CapturedSidecar;
  /** See `MeshSnapshot`. */
  readonly protocolDetectionTimeoutMs?: number;
  /** Missing = BASE. */
  readonly pathNormalization?: PathNormalization;
  /** Missing = those of sign-ins. */
  readonly redactedParameters?: readonly string[];
  /** Missing where nothing is configured: Istio's metrics, and a log. */
  readonly telemetry?: WorkloadTelemetry;
  /** Missing when no policy holds for the workload. */
  readonly security?: WorkloadSecurity;
}

export interface GatewayOwn {
  readonly type: "router";
  readonly address: string;
  readonly interceptionMode: InterceptionMode;
  /** Ports that speak plain HTTP. */
  readonly targetPorts: readonly number[];
  /** Those where browsers speak gRPC; missing when there are none. */
  readonly grpcWebPorts?: readonly number[];
  /** Ports of the other servers; missing when there are none. */
  readonly connectionListeners?: readonly GatewayListener[];
  /** Missing where clients connect by themselves. */
  readonly topology?: GatewayTopology;
  /** Missing = BASE. */
  readonly pathNormalization?: PathNormalization;
  /** Missing = those of sign-ins. */
  readonly redactedParameters?: readonly string[];
  /** Missing where nothing is configured: Istio's metrics, and a log. */
  readonly telemetry?: WorkloadTelemetry;
  /** Missing when no policy holds for the workload. */
  readonly security?: WorkloadSecurity;
}

interface Sections<Clusters, Routes, Own> {
  readonly clusters: Keyed<Clusters>;
  readonly routes: Keyed<Routes>;
  readonly own: Keyed<Own>;
}

export type ProxyView =
  | ({ readonly type: "sidecar" } & Sections<SidecarClusters, SidecarRoutes, SidecarOwn>)
  | ({ readonly type: "router" } & Sections<GatewayClusters, GatewayRoutes, GatewayOwn>);

export type ClustersSection = SidecarClusters | GatewayClusters;
export type RoutesSection = SidecarRoutes | GatewayRoutes;
export type OwnSection = SidecarOwn | GatewayOwn;
