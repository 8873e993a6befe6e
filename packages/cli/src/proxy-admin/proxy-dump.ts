// The parts of Envoy's `/config_dump` and `/clusters?format=json` that the sub-commands of `proxy-config` read.
import type { ProxyAdmin } from "./proxy-admin.ts";

export interface AddressDump {
  readonly socket_address?: { readonly address: string; readonly port_value?: number };
  readonly pipe?: { readonly path: string };
}

interface IstioMetadata {
  readonly filter_metadata?: { readonly istio?: { readonly config?: string } };
}

export interface ClusterDump {
  readonly name: string;
  readonly type?: string;
  readonly cluster_type?: { readonly name: string };
  readonly metadata?: IstioMetadata;
}

export interface ListenerDump {
  readonly name: string;
  readonly address?: AddressDump;
  readonly additional_addresses?: readonly { readonly address: AddressDump }[];
  readonly filter_chains?: readonly FilterChainDump[];
}

export interface FilterChainDump {
  readonly filter_chain_match?: {
    readonly server_names?: readonly string[];
    readonly transport_protocol?: string;
    readonly application_protocols?: readonly string[];
  };
  readonly filters?: readonly { readonly name: string; readonly typed_config?: FilterDump }[];
}

export interface FilterDump {
  readonly "@type"?: string;
  readonly rds?: { readonly route_config_name: string };
  readonly route_config?: RouteTableDump;
  readonly cluster?: string;
  readonly http_filters?: readonly { readonly name: string; readonly typed_config?: AuthorizationFilterDump }[];
  readonly rules?: AuthorizationRulesDump;
  readonly shadow_rules?: AuthorizationRulesDump;
  readonly shadow_rules_stat_prefix?: string;
}

/** Of envoy.filters.http.rbac and envoy.filters.network.rbac alike. */
export interface AuthorizationFilterDump {
  readonly "@type"?: string;
  readonly rules?: AuthorizationRulesDump;
  readonly shadow_rules?: AuthorizationRulesDump;
  readonly shadow_rules_stat_prefix?: string;
}

export interface AuthorizationRulesDump {
  /** ALLOW when missing. */
  readonly action?: string;
  readonly policies?: Readonly<Record<string, unknown>>;
}

interface DataSourceDump {
  readonly inline_bytes?: string;
  readonly inline_string?: string;
  readonly filename?: string;
}

/** A secret as `/config_dump` shows it; private keys are left out there. */
export interface SecretDump {
  readonly name: string;
  readonly state: "ACTIVE" | "WARMING";
  readonly secret?: {
    readonly tls_certificate?: { readonly certificate_chain?: DataSourceDump };
    readonly validation_context?: { readonly trusted_ca?: DataSourceDump };
    readonly generic_secret?: unknown;
    readonly session_ticket_keys?: unknown;
  };
}

export interface RouteTableDump {
  readonly name?: string;
  readonly virtual_hosts?: readonly VirtualHostDump[];
}

export interface VirtualHostDump {
  readonly name: string;
  readonly domains?: readonly string[];
  readonly routes?: readonly RouteDump[];
  readonly metadata?: { readonly filter_metadata?: { readonly tulle?: { readonly revision?: string } } };
}

export interface RouteDump {
  readonly match?: {
    readonly prefix?: string;
    readonly path?: string;
    readonly safe_regex?: { readonly regex: string };
    readonly connect_matcher?: unknown;
    readonly headers?: readonly { readonly name: string }[];
  };
  readonly metadata?: IstioMetadata;
}

export interface HostDump {
  readonly address?: AddressDump;
  readonly health_status?: { readonly eds_health_status?: string; readonly failed_outlier_check?: boolean };
}

export interface ClusterStatusDump {
  readonly name: string;
  readonly host_statuses?: readonly HostDump[];
}

interface SectionDump {
  readonly "@type": string;
}

/** One section of `/config_dump`, such as `ClustersConfigDump`. */
async function section<T>(admin: ProxyAdmin, name: string): Promise<T | undefined> {
  const dump = JSON.parse(await admin.request("GET", "/config_dump")) as { readonly configs?: readonly SectionDump[] };
  return dump.configs?.find((each) => each["@type"].endsWith(`.${name}`)) as T | undefined;
}

export async function clustersOf(admin: ProxyAdmin): Promise<readonly ClusterDump[]> {
  const dump = await section<{
    readonly static_clusters?: readonly { readonly cluster: ClusterDump }[];
    readonly dynamic_active_clusters?: readonly { readonly cluster: ClusterDump }[];
  }>(admin, "ClustersConfigDump");
  return [...(dump?.static_clusters ?? []), ...(dump?.dynamic_active_clusters ?? [])].map(({ cluster }) => cluster);
}

export async function listenersOf(admin: ProxyAdmin): Promise<readonly ListenerDump[]> {
  const dump = await section<{
    readonly static_listeners?: readonly { readonly listener: ListenerDump }[];
    readonly dynamic_listeners?: readonly { readonly active_state?: { readonly listener: ListenerDump } }[];
  }>(admin, "ListenersConfigDump");
  return [
    ...(dump?.static_listeners ?? []).map(({ listener }) => listener),
    ...(dump?.dynamic_listeners ?? []).flatMap((each) => each.active_state?.listener ?? []),
  ];
}

export async function routeTablesOf(admin: ProxyAdmin): Promise<readonly RouteTableDump[]> {
  const dump = await section<{
    readonly static_route_configs?: readonly { readonly route_config: RouteTableDump }[];
    readonly dynamic_route_configs?: readonly { readonly route_config: RouteTableDump }[];
  }>(admin, "RoutesConfigDump");
  return [...(dump?.dynamic_route_configs ?? []), ...(dump?.static_route_configs ?? [])].map(
    (each) => each.route_config,
  );
}

/** Those that came over SDS and those of the bootstrap document. */
export async function secretsOf(admin: ProxyAdmin): Promise<readonly SecretDump[]> {
  type Listed = readonly Omit<SecretDump, "state">[] | undefined;
  const dump = await section<{
    readonly static_secrets?: Listed;
    readonly dynamic_active_secrets?: Listed;
    readonly dynamic_warming_secrets?: Listed;
  }>(admin, "SecretsConfigDump");
  const inState = (secrets: Listed, state: SecretDump["state"]): SecretDump[] =>
    (secrets ?? []).map((each) => ({ ...each, state }));
  return [
    ...inState(dump?.dynamic_warming_secrets, "WARMING"),
    ...inState(dump?.dynamic_active_secrets, "ACTIVE"),
    ...inState(dump?.static_secrets, "ACTIVE"),
  ];
}

export async function bootstrapOf(admin: ProxyAdmin): Promise<unknown> {
  const dump = await section<{ readonly bootstrap?: unknown }>(admin, "BootstrapConfigDump");
  return dump?.bootstrap;
}

export async function clusterStatusesOf(admin: ProxyAdmin): Promise<readonly ClusterStatusDump[]> {
  const dump = JSON.parse(await admin.request("GET", "/clusters?format=json")) as {
    readonly cluster_statuses?: readonly ClusterStatusDump[];
  };
  return dump.cluster_statuses ?? [];
}

export function addressText({ socket_address: socket, pipe }: AddressDump = {}): { host: string; port: string } {
  if (socket !== undefined) return { host: socket.address, port: String(socket.port_value ?? 0) };
  return { host: pipe === undefined ? "-" : `unix:${pipe.path}`, port: "-" };
}

/**
 * `catalog.shop` from `/apis/…/namespaces/shop/virtual-service/catalog`, as Istio's tables show it; empty without one.
 */
export function configName({ metadata }: { readonly metadata?: IstioMetadata }): string {
  const [, namespace, name] =
    /\/namespaces\/([^/]+)\/[^/]+\/([^/]+)$/.exec(metadata?.filter_metadata?.istio?.config ?? "") ?? [];
  return name === undefined ? "" : `${name}.${namespace}`;
}
