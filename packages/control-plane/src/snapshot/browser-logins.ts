// BrowserLogins → their part of the snapshot: gateways and Services by full names, endpoints as the resource or the issuer says.
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

/** What an issuer's metadata say, by issuer (OpenID Connect Discovery 1.0 §3). */
export type DiscoveredEndpoints = ReadonlyMap<string, Partial<Omit<LoginProvider, "service">>>;

export function meshBrowserLogin(
  { metadata, spec }: BrowserLogin,
  services: readonly MeshService[],
  discovered: DiscoveredEndpoints,
): MeshBrowserLogin {
  const { name, namespace } = metadata;
  const provider = loginProvider(spec.provider, namespace, services, discovered);
  const defaultTokenLifeMs = spec.defaultTokenTTL === undefined ? undefined : parseDuration(spec.defaultTokenTTL);
  return {
    name,
    namespace,
    gateways: spec.gateways.map((gateway) => resolveGateway(gateway, namespace)),
    hosts: spec.hosts.map((host) => host.toLowerCase()),
    ...(spec.paths === undefined ? {} : { paths: spec.paths }),
    ...(provider === undefined ? {} : { provider }),
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

function loginProvider(
  provider: BrowserLogin["spec"]["provider"],
  namespace: string,
  services: readonly MeshService[],
  discovered: DiscoveredEndpoints,
): LoginProvider | undefined {
  const found = discovered.get(provider.issuer);
  const authorizationEndpoint = provider.authorizationEndpoint ?? found?.authorizationEndpoint;
  const tokenEndpoint = provider.tokenEndpoint ?? found?.tokenEndpoint;
  if (authorizationEndpoint === undefined || tokenEndpoint === undefined) return undefined;
  const endSessionEndpoint = provider.endSessionEndpoint ?? found?.endSessionEndpoint;
  const service = tokenService(provider, tokenEndpoint, namespace, services);
  return {
    authorizationEndpoint,
    tokenEndpoint,
    ...(endSessionEndpoint === undefined ? {} : { endSessionEndpoint }),
    ...(service === undefined ? {} : { service }),
  };
}

function tokenService(
  { backend }: BrowserLogin["spec"]["provider"],
  tokenEndpoint: string,
  namespace: string,
  services: readonly MeshService[],
): LoginProvider["service"] {
  const byHost = (hostname: string): MeshService | undefined => services.find((each) => each.hostname === hostname);
  const url = new URL(tokenEndpoint);
  const host = backend?.host ?? url.hostname;
  const hostname = resolveHost(host, namespace, (name) => byHost(name) !== undefined);
  const service = byHost(hostname);
  if (backend !== undefined) return { hostname, port: backend.port?.number ?? service?.ports[0]?.number ?? 80 };
  if (service === undefined) return undefined;
  return { hostname, port: url.port === "" ? (url.protocol === "https:" ? 443 : 80) : Number(url.port) };
}
