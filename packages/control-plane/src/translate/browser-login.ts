// A BrowserLogin → Envoy's oauth2 filter at the gateway: switched off in the list of filters, switched on by the
// virtual hosts of its gateways, and passing what is none of its pages. What matches too much asks for sign-in; nothing
// else is a mistake here.
import { createHash } from "node:crypto";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import type { Any } from "@bufbuild/protobuf/wkt";
import type { HttpMatch, StringMatch } from "@tulle/config";
import {
  FilterConfigSchema,
  type HeaderMatcher,
  HeaderMatcherSchema,
  type Route,
  RouteSchema,
} from "@tulle/xds/envoy/config/route/v3/route_components_pb";
import { pseudoHeader } from "./route-match.ts";
import {
  CookieConfig_SameSite as SameSite,
  OAuth2Config_AuthType as AuthType,
  type OAuth2ConfigSchema,
  OAuth2Schema,
} from "@tulle/xds/envoy/extensions/filters/http/oauth2/v3/oauth_pb";
import {
  type HttpFilter,
  HttpFilterSchema,
} from "@tulle/xds/envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager_pb";
import type { LoginProvider, MeshBrowserLogin } from "../snapshot/browser-logins.ts";
import { durationOfMs, pack } from "./messages.ts";
import { outboundClusterName } from "../names/resource-names.ts";
import { routeMatch } from "./route-match.ts";
import { signOutGuard } from "./sign-out-guard.ts";
import { adsSecretConfig } from "./tls-context.ts";

const tokenTimeoutMs = 10_000;

type LoginName = Pick<MeshBrowserLogin, "namespace" | "name">;

function filterName({ namespace, name }: LoginName): string {
  return `envoy.filters.http.oauth2/${namespace}/${name}`;
}

function guardName({ namespace, name }: LoginName): string {
  return `tulle.sign-out/${namespace}/${name}`;
}

/** SDS resources that are served to the gateways of the login alone. */
export function clientSecretResource({ namespace, name }: LoginName): string {
  return `browser-login://${namespace}/${name}/client-secret`;
}

export function cookieSecretResource({ namespace, name }: LoginName): string {
  return `browser-login://${namespace}/${name}/cookie-secret`;
}

/** Which login a resource of the two kinds is of; undefined for other names. */
export function secretOfLogin(resource: string): (LoginName & { readonly isClient: boolean }) | undefined {
  const [, namespace, name, kind] = /^browser-login:\/\/([^/]+)\/([^/]+)\/(client|cookie)-secret$/.exec(resource) ?? [];
  return namespace === undefined || name === undefined ? undefined : { namespace, name, isClient: kind === "client" };
}

/** Cluster of a token endpoint outside the mesh. */
export function tokenClusterName({ service, tokenEndpoint }: LoginProvider): string {
  return service === undefined
    ? `browser-login|${new URL(tokenEndpoint).origin}`
    : outboundClusterName(service.hostname, service.port);
}

export function browserLoginFilters(logins: readonly MeshBrowserLogin[]): readonly HttpFilter[] {
  return logins.flatMap((login) => {
    const { provider } = login;
    if (provider === undefined) return [];
    const authority = authorityExpression(login);
    const atHosts = authority === undefined ? undefined : pseudoHeader(":authority", authority, false);
    return [
      create(HttpFilterSchema, {
        name: guardName(login),
        disabled: true,
        configType: { case: "typedConfig", value: signOutGuard(login.logoutPath, atHosts) },
      }),
      create(HttpFilterSchema, {
        name: filterName(login),
        disabled: true,
        configType: {
          case: "typedConfig",
          value: pack(OAuth2Schema, { config: oauth2Config(login, provider) }),
        },
      }),
    ];
  });
}

/** typed_per_filter_config of the virtual hosts: nothing but that the filters are on there. */
export function enabledLogins(logins: readonly MeshBrowserLogin[]): { [filter: string]: Any } {
  const enabled = pack(FilterConfigSchema, { config: {} });
  return Object.fromEntries(
    logins
      .filter(({ provider }) => provider !== undefined)
      .flatMap((login) => [guardName(login), filterName(login)].map((name) => [name, enabled])),
  );
}

/**
 * Routes before all others of a virtual host. The filter answers at its own two paths, and runs only where there is a
 * route; while it is unknown where people sign in, the pages are closed rather than open.
 */
export function loginRoutes(logins: readonly MeshBrowserLogin[]): readonly Route[] {
  return logins.flatMap((login) => {
    const name = `browser-login.${login.namespace}.${login.name}`;
    const authority = authorityExpression(login);
    const at = authority === undefined ? {} : { authority: { regex: authority } };
    if (login.provider === undefined) {
      const pages = login.paths ?? [{ prefix: "/" }];
      return pages.map((uri) => ownRoute(name, { uri, ...at }, 503, "signing in is not possible yet\n"));
    }
    return [login.redirectPath, login.logoutPath].map((path) => ownRoute(name, { uri: { exact: path }, ...at }, 404));
  });
}

function ownRoute(name: string, match: HttpMatch, status: number, text?: string): Route {
  const body = text === undefined ? {} : { body: { specifier: { case: "inlineString", value: text } as const } };
  return create(RouteSchema, {
    name,
    match: routeMatch(match),
    action: { case: "directResponse", value: { status, ...body } },
  });
}

function oauth2Config(login: MeshBrowserLogin, provider: LoginProvider): MessageInitShape<typeof OAuth2ConfigSchema> {
  const { endSessionEndpoint } = provider;
  const isPublic = login.clientSecretName === undefined;
  const sameSite = login.sameSite === "Lax" ? SameSite.LAX : SameSite.NONE;
  const cookie = { sameSite };
  return {
    authorizationEndpoint: provider.authorizationEndpoint,
    tokenEndpoint: {
      uri: provider.tokenEndpoint,
      httpUpstreamType: { case: "cluster", value: tokenClusterName(provider) },
      timeout: durationOfMs(tokenTimeoutMs),
    },
    // Signing out at the provider takes an ID token.
    ...(endSessionEndpoint !== undefined && login.scopes.includes("openid") ? { endSessionEndpoint } : {}),
    ...(login.postLogoutPath === undefined
      ? {}
      : { postLogoutRedirectUri: { config: { case: "uri", value: atSameHost(login.postLogoutPath) } as const } }),
    redirectUri: atSameHost(login.redirectPath),
    redirectPathMatcher: exactPath(login.redirectPath),
    signoutPath: exactPath(login.logoutPath),
    forwardBearerToken: login.forwardsAccessToken,
    useRefreshToken: login.usesRefreshToken,
    authScopes: [...login.scopes],
    resources: [...login.resources],
    // A public client shows nothing: of the three ways this is the one without a secret.
    authType: isPublic
      ? AuthType.TLS_CLIENT_AUTH
      : login.clientAuthentication === "client_secret_basic"
        ? AuthType.BASIC_AUTH
        : AuthType.URL_ENCODED_BODY,
    ...(login.defaultTokenLifeMs === undefined ? {} : { defaultExpiresIn: durationOfMs(login.defaultTokenLifeMs) }),
    credentials: {
      clientId: login.clientId,
      ...(isPublic ? {} : { tokenSecret: adsSecretConfig(clientSecretResource(login)) }),
      tokenFormation: { case: "hmacSecret", value: adsSecretConfig(cookieSecretResource(login)) },
      cookieNames: cookieNames(login),
    },
    cookieConfigs: {
      bearerTokenCookieConfig: cookie,
      oauthHmacCookieConfig: cookie,
      oauthExpiresCookieConfig: cookie,
      idTokenCookieConfig: cookie,
      refreshTokenCookieConfig: cookie,
      oauthNonceCookieConfig: cookie,
      codeVerifierCookieConfig: cookie,
    },
    passThroughMatcher: otherPages(login),
    denyRedirectMatcher: [
      pseudoHeader(":method", "GET|HEAD", true),
      // What a page loads or a script fetches cannot sign anyone in (Fetch Metadata).
      create(HeaderMatcherSchema, {
        name: "sec-fetch-mode",
        headerMatchSpecifier: {
          case: "stringMatch",
          value: { matchPattern: { case: "exact", value: "navigate" } },
        },
        invertMatch: true,
      }),
    ],
  };
}

/** A format of Envoy's: the host that the page was asked at, so that one sign-in serves them all. */
function atSameHost(path: string): string {
  return `%REQ(x-forwarded-proto)%://%REQ(:authority)%${path.replaceAll("%", "%%")}`;
}

/**
 * Two sign-ins at one host must not share cookies; by the prefix browsers take them from that host alone (RFC 6265bis
 * §4.1.3).
 */
function cookieNames(login: LoginName): Record<string, string> {
  const suffix = createHash("sha256").update(`${login.namespace}/${login.name}`).digest("hex").slice(0, 8);
  return {
    bearerToken: `__Host-AccessToken-${suffix}`,
    oauthHmac: `__Host-OauthHMAC-${suffix}`,
    oauthExpires: `__Host-OauthExpires-${suffix}`,
    idToken: `__Host-IdToken-${suffix}`,
    refreshToken: `__Host-RefreshToken-${suffix}`,
    oauthNonce: `__Host-OauthNonce-${suffix}`,
    codeVerifier: `__Host-CodeVerifier-${suffix}`,
  };
}

function exactPath(path: string) {
  return {
    rule: { case: "path", value: { matchPattern: { case: "exact", value: path } } },
  } as const;
}

/**
 * Nothing where all pages are the login's. The pages are matched as routes match them, so that no spelling lies
 * between.
 */
function otherPages(login: MeshBrowserLogin): HeaderMatcher[] {
  const authority = authorityExpression(login);
  const others = authority === undefined ? [] : [pseudoHeader(":authority", authority, true)];
  if (login.paths === undefined) return others;
  const own: readonly StringMatch[] = [{ exact: login.redirectPath }, { exact: login.logoutPath }];
  const pages = [...login.paths, ...own].map(pathExpression);
  return [...others, pseudoHeader(":path", pages.join("|"), true)];
}

/** Hosts of the login, where it shares virtual hosts with others; undefined for all. */
function authorityExpression({ hosts }: MeshBrowserLogin): string | undefined {
  if (hosts.includes("*")) return undefined;
  const names = hosts.map((host) => (host.startsWith("*") ? `.*${quoted(host.slice(1))}` : quoted(host)));
  return `(?i:${names.join("|")})(?::[0-9]+)?`;
}

function pathExpression({ exact, prefix, regex }: StringMatch): string {
  if (prefix !== undefined) return `${quoted(prefix)}.*`;
  return `(?:${exact === undefined ? regex! : quoted(exact)})(?:\\?.*)?`;
}

/** The text itself, as RE2 reads it. */
function quoted(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&");
}
