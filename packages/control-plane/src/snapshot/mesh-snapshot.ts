// The frozen picture of the mesh that every later stage reads: names resolved, ports typed, order settled. Endpoints
// are a picture of their own, so that an endpoint that comes or goes never rebuilds a route.
import type { AuthorizationPolicy, AuthorizationRule, GatewayServer, HttpRoute, JwtRule } from "@tulle/config";
import type { PolicyScope, TcpRoute, TlsRoute } from "@tulle/config";
import type {
  EntryResolution,
  GatewayTopology,
  PathNormalization,
  PeerAuthenticationScope,
  PortProtocol,
  TrafficPolicy,
} from "@tulle/config";
import type { MeshAuthorizer } from "./authorizers.ts";
import type { MeshBrowserLogin } from "./browser-logins.ts";
import type { NetworkGateways } from "./networks.ts";
import type { MeshTelemetries } from "./telemetry.ts";

export interface MeshPort {
  /** Empty where a Service with one port gives it no name. */
  readonly name: string;
  readonly number: number;
  readonly targetPort: number | string;
  readonly protocol: PortProtocol;
}

export interface MeshService {
  /** `catalog.shop.svc.cluster.local` */
  readonly hostname: string;
  readonly name: string;
  readonly namespace: string;
  /** Addresses that clients may name; none for a headless Service. */
  readonly addresses: readonly string[];
  readonly selector: Readonly<Record<string, string>>;
  readonly ports: readonly MeshPort[];
  /** SPIFFE ids of the workloads behind it. Missing without an authority. */
  readonly identities?: readonly string[];
  /** HTTP/1.1 to it becomes HTTP/2 unless a rule says otherwise: the mesh says so, and its workloads have sidecars. */
  readonly isUpgraded?: true;
  /** Headless, and each of its pods takes mutual TLS, whichever a client dials. */
  readonly podsTakeMutualTls?: true;
  /** Namespaces whose proxies know it; missing for all. */
  readonly exportedTo?: readonly string[];
  /** What a ServiceEntry says besides; missing for a Service of the cluster. */
  readonly entry?: MeshServiceEntry;
}

/** Of a service that is a host of a ServiceEntry. */
export interface MeshServiceEntry {
  /** Its name; the service goes by its host. */
  readonly resource: string;
  readonly resolution: EntryResolution;
  /** Outside of the mesh: nobody there takes its mutual TLS. */
  readonly isExternal?: true;
  /** Names of which the servers' certificates must have one; missing where none is asked for. */
  readonly subjectAltNames?: readonly string[];
  /** Ranges of addresses that clients may name; missing without any. */
  readonly ranges?: readonly string[];
  /** Endpoints by the port of the service, their addresses names; missing for STATIC and NONE. */
  readonly lookedUp?: Readonly<Record<number, readonly MeshEndpoint[]>>;
}

export interface MeshGatewayServer {
  /** Port of the gateway's Service, or of its pods where no Service has that port. */
  readonly port: number;
  readonly protocol: string;
  /** `namespace/host` as written; `*`, `.` or a name before the slash, which may be missing. */
  readonly hosts: readonly string[];
  /** Missing for a server that speaks plain HTTP and redirects nobody. */
  readonly tls?: GatewayServerTls;
  /** Part of the name of a route table that TLS servers have for themselves; missing elsewhere. */
  readonly portName?: string;
}

/** Checked as a whole; the mode of a server that speaks TLS is PASSTHROUGH when missing. */
export type GatewayServerTls = NonNullable<GatewayServer["tls"]>;

export interface MeshGateway {
  readonly name: string;
  readonly namespace: string;
  readonly selector: Readonly<Record<string, string>>;
  readonly servers: readonly MeshGatewayServer[];
}

export interface MeshVirtualService {
  readonly name: string;
  readonly namespace: string;
  /** Full names, wildcards kept. */
  readonly hosts: readonly string[];
  /** The same and, as written, short ones: outside the mesh `localhost` is a host of its own. */
  readonly gatewayHosts: readonly string[];
  /** `mesh`, or `namespace/name` of a Gateway. */
  readonly gateways: readonly string[];
  /** As written, with the hosts of destinations made full names. */
  readonly http: readonly HttpRoute[];
  /**
   * Routes of connections; destinations by full name, gateways of matches by `namespace/name`. Missing when there are
   * none.
   */
  readonly tls?: readonly TlsRoute[];
  readonly tcp?: readonly TcpRoute[];
  /** Namespaces whose proxies follow it; missing for all. */
  readonly exportedTo?: readonly string[];
}

export interface MeshSubset {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly trafficPolicy?: TrafficPolicy;
}

export interface MeshDestinationRule {
  readonly name: string;
  readonly namespace: string;
  /** Full name, a leading wildcard kept. */
  readonly host: string;
  readonly trafficPolicy?: TrafficPolicy;
  readonly subsets: readonly MeshSubset[];
  /** Namespaces whose proxies follow it besides its own; missing for all. */
  readonly exportedTo?: readonly string[];
  /** Labels of the clients that it is for, which are of its own namespace; missing for all. */
  readonly workloadSelector?: Readonly<Record<string, string>>;
}

export interface MeshAuthorizationPolicy extends PolicyScope {
  readonly name: string;
  readonly action: NonNullable<AuthorizationPolicy["spec"]["action"]>;
  /** Evaluated and counted, and without effect. */
  readonly dryRun: boolean;
  readonly rules: readonly AuthorizationRule[];
  /** Of the action CUSTOM: the name of a `MeshAuthorizer`, or of nobody. */
  readonly provider?: string;
}

/** Where the keys of an issuer are to be had. */
export interface JwksLocation {
  readonly url: string;
  /**
   * The URL is that of the issuer's discovery document, which names that of the keys (OpenID Connect Discovery 1.0 §4).
   */
  readonly isDiscovery: boolean;
}

export interface MeshJwtRule extends Omit<JwtRule, "jwks" | "jwksUri" | "jwks_uri" | "timeout"> {
  /** JSON; missing until they have been fetched. */
  readonly jwks?: string;
  /** Missing where the policy holds the keys itself. */
  readonly location?: JwksLocation;
  readonly fetchTimeoutMs?: number;
}

export interface MeshRequestAuthentication extends PolicyScope {
  readonly name: string;
  readonly jwtRules: readonly MeshJwtRule[];
}

export type TlsVersion = "TLSV1_2" | "TLSV1_3";

/** All lists stand in the order that decides conflicts: creation time where it is known, else first seen. */
export interface MeshSnapshot {
  /** Of the authority that signs the workloads' certificates. Missing when there is none: then nothing is encrypted. */
  readonly trustDomain?: string;
  /** Lowest version between workloads; TLS 1.3 when missing. */
  readonly minimumTls?: TlsVersion;
  readonly services: readonly MeshService[];
  readonly gateways: readonly MeshGateway[];
  readonly virtualServices: readonly MeshVirtualService[];
  readonly destinationRules: readonly MeshDestinationRule[];
  /** Missing when there are none, as the next. */
  readonly authorizationPolicies?: readonly MeshAuthorizationPolicy[];
  readonly requestAuthentications?: readonly MeshRequestAuthentication[];
  readonly browserLogins?: readonly MeshBrowserLogin[];
  /** Whom policies of the action CUSTOM may ask; missing without any. */
  readonly authorizers?: readonly MeshAuthorizer[];
  /** Missing = BASE. */
  readonly pathNormalization?: PathNormalization;
  /** Parameters of queries whose values stand in no access log, in lower case; missing = `secretParameters`. */
  readonly redactedParameters?: readonly string[];
  /** Missing where neither resources nor the mesh's configuration say anything of it: Istio's metrics, and a log. */
  readonly telemetry?: MeshTelemetries;
  /** How long a silent client is waited for where its first bytes tell what it speaks; 0 = for ever; missing = 5 s. */
  readonly protocolDetectionTimeoutMs?: number;
  /** Of gateways that do not say themselves; missing where nothing stands before them. */
  readonly gatewayTopology?: GatewayTopology;
  /** Workloads reach the hosts of the mesh alone; missing where they reach others too. */
  readonly registryOnly?: true;
  /** Of networks that others come into by gateways; missing where all of the mesh is reached directly. */
  readonly networkGateways?: NetworkGateways;
  /** Oldest first, as `mutualTlsModes` wants them. */
  readonly peerAuthentications?: readonly PeerAuthenticationScope[];
}

export interface MeshEndpoint {
  /** Empty where it is reached by the gateways of its network alone. */
  readonly address: string;
  /** Of the other family, where a slice names it. Requests go to `address`. */
  readonly otherAddresses?: readonly string[];
  readonly port: number;
  /** Of a pod that has a name of its own in DNS. */
  readonly hostname?: string;
  /** Labels of the pod behind the address; subsets are chosen by them. */
  readonly labels: Readonly<Record<string, string>>;
  /** Name of the Deployment (or other owner) that made the pod. */
  readonly workload: string;
  readonly namespace: string;
  /** `region/zone/subzone`; missing where it is not known. */
  readonly locality?: string;
  /** Missing where nobody says: then everybody reaches it directly. */
  readonly network?: string;
  /** 1 when missing. */
  readonly weight?: number;
  /** "istio" where the workload's proxy takes mutual TLS at this port; missing where it takes plain text alone. */
  readonly tlsMode?: "istio";
  /** It takes mutual TLS alone (STRICT). */
  readonly refusesPlainText?: true;
}

/** Ready endpoints by `servicePortKey`, sorted by address so that equal sets are equal. */
export interface EndpointSnapshot {
  readonly byServicePort: ReadonlyMap<string, readonly MeshEndpoint[]>;
  /** Those that end, and answer until then: for where nobody is ready (as kube-proxy). */
  readonly leaving: ReadonlyMap<string, readonly MeshEndpoint[]>;
  /** Those that are not ready, of Services without an address: their clients may hold connections to them. */
  readonly notReady: ReadonlyMap<string, readonly MeshEndpoint[]>;
  /** Keys of those behind which every workload refuses plain text, be it ready or not. */
  readonly encryptedOnly: readonly string[];
}

/** Two namespaces may have ServiceEntries for one host. */
export function servicePortKey(
  { hostname, namespace, entry }: Pick<MeshService, "hostname" | "namespace" | "entry">,
  port: number,
): string {
  return entry === undefined ? `${hostname}:${port}` : `${namespace}/${hostname}:${port}`;
}
