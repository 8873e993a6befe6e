// BrowserLogins → their part of the snapshot: gateways and Services by full names, endpoints as the resource or the
// issuer says.
import { parseDuration, resolveGateway, resolveHost } from "@tulle/config";
import type { BrowserLogin, StringMatch } from "@tulle/config";
import type { MeshService } from "./mesh-snapshot.ts";

export interface MeshBrowserLogin {
  readonly name: string;
  readonly namespace: string;
  /** `namespace/name`. */
  readonly gateways: readonly string[];
  readonly hosts: readonly string[];
  /** Missing = all of the hosts. */
  readonly paths?: readonly StringMatch[];
  /** Missing while it is not known where browsers sign in: then the pages are closed. */
  readonly provider?: LoginProvider;
  /** Missing where the resource says everything. */
  readonly discovery?: ProviderLocation;
  readonly clientId: string;
  /** Of the same namespace; missing for a public client. */
  readonly clientSecretName?: string;
  readonly clientAuthentication: BrowserLogin["spec"]["clientAuthentication"];
  readonly scopes: readonly string[];
  readonly resources: readonly string[];
  readonly redirectPath: string;
  readonly logoutPath: string;
  /** Missing = `/`. */
  readonly postLogoutPath?: string;
  readonly forwardsAccessToken: boolean;
  readonly usesRefreshToken: boolean;
  /** Missing = the token endpoint has to say it. */
  readonly defaultTokenLifeMs?: number;
  readonly sameSite: BrowserLogin["spec"]["cookies"]["sameSite"];
}

export interface LoginProvider {
  readonly authorizationEndpoint: string;
  readonly tokenEndpoint: string;
  readonly endSessionEndpoint?: string;
  /** The Service that the token endpoint is reached at; missing for one outside the mesh. */
  readonly service?: { readonly hostname: string; readonly port: number };
}

/** Whose metadata say what the resource does not, and where they are asked for. */
export interface ProviderLocation {
  readonly issuer: string;
  /** The provider's Service; missing for one that is reached by its own address. */
  readonly service?: { readonly hostname: string; readonly port: number };
}

export function discoveryKey({ issuer, service }: ProviderLocation): string {
  return service === undefined ? issuer : `${issuer} at ${service.hostname}:${service.port}`;
}

/** What issuers' metadata say, by `discoveryKey` (OpenID Connect Discovery 1.0 §3). */
export type DiscoveredEndpoints = ReadonlyMap<string, Partial<Omit<LoginProvider, "service">>>;

export function meshBrowserLogin(
  { metadata, spec }: BrowserLogin,
  services: readonly MeshService[],
  discovered: DiscoveredEndpoints,
): MeshBrowserLogin {
  const { name, namespace } = metadata;
  const discovery = providerLocation(spec.provider, namespace, services);
  const found = discovery === undefined ? undefined : discovered.get(discoveryKey(discovery));
  const provider = loginProvider({ ...found, ...withoutMissing(spec.provider) }, namespace, services);
  const defaultTokenLifeMs = spec.defaultTokenTTL === undefined ? undefined : parseDuration(spec.defaultTokenTTL);
  return {
    name,
    namespace,
    gateways: spec.gateways.map((gateway) => resolveGateway(gateway, namespace)),
    hosts: spec.hosts.map((host) => host.toLowerCase()),
    ...(spec.paths === undefined ? {} : { paths: spec.paths }),
    ...(provider === undefined ? {} : { provider }),
    ...(discovery === undefined ? {} : { discovery }),
    clientId: spec.clientID,
    ...(spec.clientSecret === undefined ? {} : { clientSecretName: spec.clientSecret.name }),
    clientAuthentication: spec.clientAuthentication,
    scopes: spec.scopes,
    resources: spec.resources ?? [],
    redirectPath: spec.redirectPath,
    logoutPath: spec.logoutPath,
    ...(spec.postLogoutPath === undefined ? {} : { postLogoutPath: spec.postLogoutPath }),
    forwardsAccessToken: spec.forwardAccessToken,
    usesRefreshToken: spec.refreshToken,
    ...(defaultTokenLifeMs === undefined ? {} : { defaultTokenLifeMs }),
    sameSite: spec.cookies.sameSite,
  };
}

type ProviderFields = BrowserLogin["spec"]["provider"];

function withoutMissing(provider: ProviderFields): ProviderFields {
  return Object.fromEntries(Object.entries(provider).filter(([, value]) => value !== undefined)) as ProviderFields;
}

/**
 * A resource that names the two needed endpoints is complete: without an end of sessions, signing out is the gateway's
 * affair.
 */
function providerLocation(
  { issuer, authorizationEndpoint, tokenEndpoint, backend }: ProviderFields,
  namespace: string,
  services: readonly MeshService[],
): ProviderLocation | undefined {
  if (authorizationEndpoint !== undefined && tokenEndpoint !== undefined) return undefined;
  const service = backend === undefined ? undefined : serviceOf(backend, namespace, services);
  return { issuer, ...(service === undefined ? {} : { service }) };
}

function loginProvider(
  provider: ProviderFields,
  namespace: string,
  services: readonly MeshService[],
): LoginProvider | undefined {
  const { authorizationEndpoint, tokenEndpoint, endSessionEndpoint, backend } = provider;
  if (authorizationEndpoint === undefined || tokenEndpoint === undefined) return undefined;
  const service =
    backend === undefined ? serviceAt(tokenEndpoint, namespace, services) : serviceOf(backend, namespace, services);
  return {
    authorizationEndpoint,
    tokenEndpoint,
    ...(endSessionEndpoint === undefined ? {} : { endSessionEndpoint }),
    ...(service === undefined ? {} : { service }),
  };
}

type ServiceAddress = NonNullable<LoginProvider["service"]>;

function serviceOf(
  { host, port }: NonNullable<ProviderFields["backend"]>,
  namespace: string,
  services: readonly MeshService[],
): ServiceAddress {
  const find = (name: string): MeshService | undefined => services.find((each) => each.hostname === name);
  const hostname = resolveHost(host, namespace, (name) => find(name) !== undefined);
  return { hostname, port: port?.number ?? find(hostname)?.ports[0]?.number ?? 80 };
}

/** Where the token endpoint's own host is a Service; undefined outside the mesh. */
function serviceAt(
  tokenEndpoint: string,
  namespace: string,
  services: readonly MeshService[],
): ServiceAddress | undefined {
  const url = new URL(tokenEndpoint);
  const isService = (name: string): boolean => services.some((each) => each.hostname === name);
  const hostname = resolveHost(url.hostname, namespace, isService);
  if (!isService(hostname)) return undefined;
  return { hostname, port: url.port === "" ? (url.protocol === "https:" ? 443 : 80) : Number(url.port) };
}
