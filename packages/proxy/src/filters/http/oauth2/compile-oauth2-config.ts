// OAuth2Config of the wire → what the filter reads. Envoy's defaults, and what this proxy refuses, stand here.
import type { HeaderMatcher } from "@tulle/xds/envoy/config/route/v3/route_components_pb";
import type { HttpUri } from "@tulle/xds/envoy/config/core/v3/http_uri_pb";
import {
  type CookieConfig,
  CookieConfig_SameSite as SameSite,
  type OAuth2Config as OAuth2ConfigMessage,
  OAuth2Config_AuthType as AuthType,
  type OAuth2Credentials,
} from "@tulle/xds/envoy/extensions/filters/http/oauth2/v3/oauth_pb";
import type { SdsSecretConfig } from "@tulle/xds/envoy/extensions/transport_sockets/tls/v3/secret_pb";
import type { PathMatcher } from "@tulle/xds/envoy/type/matcher/v3/path_pb";
import type { Duration } from "@bufbuild/protobuf/wkt";
import { compileRetries } from "../../../fields/compile-async-retries.ts";
import { durationMs } from "../../../fields/duration.ts";
import { compileRequestHeaderMatcher } from "../../../fields/matchers/header-matcher.ts";
import { compileStringMatcher } from "../../../fields/matchers/string-matcher.ts";
import type { Place } from "../../../fields/problems.ts";
import { compileSecretReference } from "../../../fields/compile-secret-source.ts";
import { compileTextFormat, type TextFormat } from "../../../format/substitution-format.ts";
import type { RequestHead } from "../../../http/message.ts";
import type { FilterBuild } from "../filter-registration.ts";
import type { CookieNames, CookieSettings } from "./cookies.ts";
import type { ClientAuthentication, CookieUse, OAuth2Config, TokenEndpoint } from "./oauth2-config.ts";

const flowExpiresSeconds = 600;
const refreshTokenExpiresSeconds = 604_800;

/** Undefined after an error. */
export function compileOAuth2Config(
  message: OAuth2ConfigMessage,
  build: FilterBuild,
  place: Place,
): OAuth2Config | undefined {
  const { problems } = build;
  const credentials = message.credentials;
  if (credentials === undefined) problems.error(place.field("credentials"), "value is required");
  const authentication = authenticationOf(message.authType);
  if (authentication === undefined) problems.error(place.field("auth_type"), "PRIVATE_KEY_JWT is not supported");
  if (message.disableTokenEncryption) problems.error(place.field("disable_token_encryption"), "is not supported");
  const authorization = URL.parse(message.authorizationEndpoint);
  if (authorization === null) {
    const words = `OAuth2 filter: invalid authorization endpoint URL '${message.authorizationEndpoint}' in config.`;
    problems.error(place.field("authorization_endpoint"), words);
  }
  const isOpenId = message.authScopes.includes("openid");
  if (message.endSessionEndpoint !== "" && !isOpenId) {
    const words = "OAuth2 filter: end session endpoint is only supported for OpenID Connect.";
    problems.error(place.field("end_session_endpoint"), words);
  }
  const tokenEndpoint = compileTokenEndpoint(message, build, place.field("token_endpoint"));
  const secrets = credentials && compileSecrets(credentials, authentication, build, place.field("credentials"));
  const format = (text: string, field: string): TextFormat =>
    compileTextFormat(text, "-", build.scope, place.field(field), problems);
  const tests = {
    redirectUri: format(message.redirectUri, "redirect_uri"),
    isRedirectPath: compilePath(message.redirectPathMatcher, place.field("redirect_path_matcher"), build),
    isSignoutPath: compilePath(message.signoutPath, place.field("signout_path"), build),
    passesThrough: compileAny(message.passThroughMatcher, place, "pass_through_matcher", build),
    deniesRedirect: compileAny(message.denyRedirectMatcher, place, "deny_redirect_matcher", build),
    allowsFailure: compileAny(message.allowFailedMatcher, place, "allow_failed_matcher", build),
    originalRequestUri:
      message.originalRequestUri === "" ? undefined : format(message.originalRequestUri, "original_request_uri"),
    postLogoutRedirectUri: compilePostLogout(message, format),
  };
  if (message.redirectUri === "") {
    problems.error(place.field("redirect_uri"), "value length must be at least 1 characters");
  }
  if (problems.hasErrors || tokenEndpoint === undefined || authorization === null || secrets === undefined) {
    return undefined;
  }
  return {
    ...tests,
    ...secrets,
    tokenEndpoint,
    authentication: authentication!,
    authorizationEndpoint: authorization.origin + authorization.pathname,
    authorizationParameters: authorizationParameters(message, authorization),
    endSessionEndpoint: message.endSessionEndpoint,
    allowedRedirectDomains: message.allowedRedirectDomains,
    clientId: credentials!.clientId,
    isOpenId,
    forwardBearerToken: message.forwardBearerToken,
    idTokenHeader: message.forwardIdToken?.header.toLowerCase(),
    preserveAuthorizationHeader: message.preserveAuthorizationHeader,
    usesRefreshToken: message.useRefreshToken ?? true,
    defaultExpiresSeconds: seconds(message.defaultExpiresIn, 0),
    defaultRefreshTokenExpiresSeconds: seconds(message.defaultRefreshTokenExpiresIn, refreshTokenExpiresSeconds),
    csrfTokenExpiresSeconds: seconds(message.csrfTokenExpiresIn, flowExpiresSeconds),
    codeVerifierExpiresSeconds: seconds(message.codeVerifierTokenExpiresIn, flowExpiresSeconds),
    keepsAccessToken: !message.disableAccessTokenSetCookie,
    keepsIdToken: !message.disableIdTokenSetCookie,
    keepsRefreshToken: !message.disableRefreshTokenSetCookie,
    idTokenCookieFollowsAccessToken: message.useAccessTokenExpiryForIdTokenCookie,
    cookieNames: cookieNamesOf(credentials!),
    cookieSettings: cookieSettingsOf(message),
    cookieDomain: credentials!.cookieDomain,
  };
}

function seconds(duration: Duration | undefined, fallback: number): number {
  return Math.floor(durationMs(duration, fallback * 1000) / 1000);
}

function authenticationOf(type: AuthType): ClientAuthentication | undefined {
  switch (type) {
    case AuthType.BASIC_AUTH:
      return "basic_auth";
    case AuthType.TLS_CLIENT_AUTH:
      return "tls_client_auth";
    case AuthType.PRIVATE_KEY_JWT:
      return undefined;
    default:
      return "url_encoded_body";
  }
}

/** What the endpoint's own query says stays; Envoy's default scope is `user`. */
function authorizationParameters(message: OAuth2ConfigMessage, endpoint: URL): readonly (readonly [string, string])[] {
  const parameters = new URLSearchParams(endpoint.search);
  parameters.set("client_id", message.credentials!.clientId);
  parameters.set("response_type", "code");
  parameters.set("scope", message.authScopes.length === 0 ? "user" : message.authScopes.join(" "));
  for (const resource of message.resources) parameters.append("resource", resource);
  return [...parameters];
}

function compileTokenEndpoint(
  message: OAuth2ConfigMessage,
  { scope, problems, clusterNames }: FilterBuild,
  place: Place,
): TokenEndpoint | undefined {
  const endpoint: HttpUri | undefined = message.tokenEndpoint;
  if (endpoint === undefined) {
    problems.error(place, "value is required");
    return undefined;
  }
  const url = URL.parse(endpoint.uri);
  if (url === null || (url.protocol !== "http:" && url.protocol !== "https:")) {
    problems.error(place.field("uri"), `is not an http or https URL: '${endpoint.uri}'`);
    return undefined;
  }
  const upstream = endpoint.httpUpstreamType;
  if (upstream.case !== "cluster" || upstream.value === "") {
    problems.error(place.field("cluster"), "value length must be at least 1 characters");
    return undefined;
  }
  clusterNames.add(upstream.value);
  return {
    cluster: scope.clusterSlot(upstream.value),
    scheme: url.protocol === "https:" ? "https" : "http",
    authority: url.host,
    path: url.pathname + url.search,
    timeoutMs: durationMs(endpoint.timeout, 0),
    retries: message.retryPolicy && compileRetries(message.retryPolicy),
  };
}

type Secrets = Pick<OAuth2Config, "clientSecret" | "cookieSecret">;

function compileSecrets(
  credentials: OAuth2Credentials,
  authentication: ClientAuthentication | undefined,
  build: FilterBuild,
  place: Place,
): Secrets | undefined {
  const { problems } = build;
  const formation = credentials.tokenFormation;
  const needsClientSecret = authentication !== "tls_client_auth";
  if (credentials.clientId === "") {
    problems.error(place.field("client_id"), "value length must be at least 1 characters");
  }
  if (needsClientSecret && credentials.tokenSecret === undefined) {
    problems.error(place.field("token_secret"), "invalid token secret configuration");
    return undefined;
  }
  if (formation.case !== "hmacSecret") {
    problems.error(place.field("hmac_secret"), "invalid HMAC secret configuration");
    return undefined;
  }
  const none = (): Buffer | undefined => undefined;
  return {
    clientSecret: needsClientSecret
      ? genericSecret(credentials.tokenSecret!, build, place.field("token_secret"))
      : none,
    cookieSecret: genericSecret(formation.value, build, place.field("hmac_secret")),
  };
}

function genericSecret(config: SdsSecretConfig, build: FilterBuild, place: Place): () => Buffer | undefined {
  const slot = compileSecretReference(config, build.scope, build.secretSlots, place, build.problems);
  return () => (slot?.current?.type === "generic_secret" ? slot.current.secret : undefined);
}

function compilePostLogout(
  { postLogoutRedirectUri }: OAuth2ConfigMessage,
  format: (text: string, field: string) => TextFormat,
): TextFormat | "none" | undefined {
  const config = postLogoutRedirectUri?.config;
  if (config?.case === "uri") return format(config.value, "post_logout_redirect_uri");
  return config?.case === "disabled" && config.value ? "none" : undefined;
}

function compilePath(
  matcher: PathMatcher | undefined,
  place: Place,
  { problems }: FilterBuild,
): (path: string) => boolean {
  if (matcher?.rule.case !== "path") {
    problems.error(place, "value is required");
    return () => false;
  }
  const matches = compileStringMatcher(matcher.rule.value, place.field("path"), problems);
  return (path) => matches(path.replace(/[?#].*$/s, ""));
}

function compileAny(
  matchers: readonly HeaderMatcher[],
  place: Place,
  field: string,
  { problems }: FilterBuild,
): (request: RequestHead) => boolean {
  const all = matchers.map((matcher, index) =>
    compileRequestHeaderMatcher(matcher, place.field(field, index), problems),
  );
  return (request) => all.some((matches) => matches(request));
}

const defaultCookieNames: CookieNames = {
  bearerToken: "BearerToken",
  oauthHmac: "OauthHMAC",
  oauthExpires: "OauthExpires",
  idToken: "IdToken",
  refreshToken: "RefreshToken",
  oauthNonce: "OauthNonce",
  codeVerifier: "CodeVerifier",
};

const cookieUses = Object.keys(defaultCookieNames) as readonly CookieUse[];

function cookieNamesOf({ cookieNames }: OAuth2Credentials): CookieNames {
  const named = cookieUses.map((use) => [use, cookieNames?.[use] || defaultCookieNames[use]]);
  return Object.fromEntries(named) as CookieNames;
}

function cookieSettingsOf({ cookieConfigs }: OAuth2ConfigMessage): Readonly<Record<CookieUse, CookieSettings>> {
  const settings = cookieUses.map((use) => [use, cookieSettings(cookieConfigs?.[`${use}CookieConfig`])]);
  return Object.fromEntries(settings) as Record<CookieUse, CookieSettings>;
}

const sameSites: Readonly<Record<number, CookieSettings["sameSite"]>> = {
  [SameSite.STRICT]: "Strict",
  [SameSite.LAX]: "Lax",
  [SameSite.NONE]: "None",
};

function cookieSettings(config: CookieConfig | undefined): CookieSettings {
  return {
    path: config === undefined || config.path === "" ? "/" : config.path,
    sameSite: config && sameSites[config.sameSite],
    isPartitioned: config?.partitioned ?? false,
  };
}
