// The filter's configuration as the request path reads it (extensions.filters.http.oauth2.v3.OAuth2Config).
import type { Cluster } from "../../../cluster/cluster.ts";
import type { RequestHead } from "../../../http/message.ts";
import type { TextFormat } from "../../../format/substitution-format.ts";
import type { Slot } from "../../../runtime/slot.ts";
import type { AsyncRetries } from "../../../upstream/async-client.ts";
import type { CookieNames, CookieSettings } from "./cookies.ts";

export type CookieUse = keyof CookieNames;

/**
 * How the gateway shows the token endpoint who it is: secret in the body, in `Authorization: Basic`, or not at all (a
 * client certificate, or a public client that PKCE protects).
 */
export type ClientAuthentication = "url_encoded_body" | "basic_auth" | "tls_client_auth";

export interface TokenEndpoint {
  readonly cluster: Slot<Cluster>;
  readonly scheme: "http" | "https";
  readonly authority: string;
  readonly path: string;
  /** 0 = none. */
  readonly timeoutMs: number;
  readonly retries: AsyncRetries | undefined;
}

type HeadTest = (request: RequestHead) => boolean;

export interface OAuth2Config {
  readonly tokenEndpoint: TokenEndpoint;
  /** Without its query. */
  readonly authorizationEndpoint: string;
  /** Parameters that do not change from one sign-in to the next. */
  readonly authorizationParameters: readonly (readonly [string, string])[];
  /** Empty = sign-out is the gateway's own affair. */
  readonly endSessionEndpoint: string;
  /** Where the provider sends the browser after sign-out; undefined = the site's root. */
  readonly postLogoutRedirectUri: TextFormat | "none" | undefined;
  readonly redirectUri: TextFormat;
  /** Scheme and authority of the pages; undefined = those of the request. */
  readonly originalRequestUri: TextFormat | undefined;
  readonly allowedRedirectDomains: readonly string[];
  readonly isRedirectPath: (path: string) => boolean;
  readonly isSignoutPath: (path: string) => boolean;
  readonly clientId: string;
  readonly authentication: ClientAuthentication;
  /** Undefined until it has come by SDS. */
  readonly clientSecret: () => Buffer | undefined;
  readonly cookieSecret: () => Buffer | undefined;
  readonly isOpenId: boolean;
  readonly forwardBearerToken: boolean;
  /** Lower-case name; undefined = the ID token is not passed on. */
  readonly idTokenHeader: string | undefined;
  readonly preserveAuthorizationHeader: boolean;
  readonly passesThrough: HeadTest;
  readonly deniesRedirect: HeadTest;
  readonly allowsFailure: HeadTest;
  readonly usesRefreshToken: boolean;
  /** 0 = the answer must say it. */
  readonly defaultExpiresSeconds: number;
  readonly defaultRefreshTokenExpiresSeconds: number;
  readonly csrfTokenExpiresSeconds: number;
  readonly codeVerifierExpiresSeconds: number;
  readonly keepsAccessToken: boolean;
  readonly keepsIdToken: boolean;
  readonly keepsRefreshToken: boolean;
  readonly idTokenCookieFollowsAccessToken: boolean;
  readonly cookieNames: CookieNames;
  readonly cookieSettings: Readonly<Record<CookieUse, CookieSettings>>;
  /** Empty = the host that set them alone. */
  readonly cookieDomain: string;
}
