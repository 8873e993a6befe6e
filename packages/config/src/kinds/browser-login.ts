/**
 * BrowserLogin: pages of a gateway that people have to sign in for, at which OpenID provider. Its words are those of
 * Envoy Gateway's SecurityPolicy.oidc where it has them.
 */
import { boolean, defaulted, enumeration, list, object, optional, required, string } from "../schema/schema.ts";
import type { ObjectValue, Report } from "../schema/schema.ts";
import { dnsSubdomain, duration, gatewayReference, nonEmpty, quote, wildcardHost } from "../schema/formats.ts";
import type { Format } from "../schema/formats.ts";
import { defineKind } from "./definition.ts";
import { destination, uriMatch } from "./http-route.ts";
import { subdomainNamedMetadata } from "./metadata.ts";
import { webUrl } from "../schema/web-url.ts";

const path: Format = {
  name: "path",
  description: "a path that begins with a slash, without a query",
  check: (value) =>
    /^\/[A-Za-z0-9\-._~!$&'()*+,;=:@%/]*$/.test(value) ? undefined : `${quote(value)} is not a path without a query`,
  jsonSchema: { pattern: "^/" },
};

/** RFC 6749 §3.3. */
const scopeToken: Format = {
  name: "scope",
  description: "printable characters without spaces, quotes and backslashes",
  check: (value) => (/^[\x21\x23-\x5b\x5d-\x7e]+$/.test(value) ? undefined : `${quote(value)} is not a scope`),
  jsonSchema: { minLength: 1 },
};

const providerFields = {
  issuer: required(string(webUrl), "The OpenID provider, as its tokens name it."),
  authorizationEndpoint: optional(string(webUrl), "Where browsers sign in; the issuer's metadata say it when missing."),
  tokenEndpoint: optional(
    string(webUrl),
    "Where the gateway redeems codes; the issuer's metadata say it when missing.",
  ),
  endSessionEndpoint: optional(
    string(webUrl),
    "Where browsers sign out, too; without it signing out is the gateway's own affair.",
  ),
  backend: optional(
    destination,
    "The provider's Service, where it is one of the mesh: the gateway's calls go there, whatever host the endpoints name.",
  ),
} as const;

const browserLoginFields = {
  gateways: required(
    list(string(gatewayReference), { minItems: 1 }),
    "Gateways whose pages these are, as a VirtualService names them.",
  ),
  hosts: defaulted(list(string(wildcardHost), { minItems: 1 }), ["*"], "Hosts of the pages; all when missing."),
  paths: optional(list(uriMatch, { minItems: 1 }), "The pages that need sign-in; all of the hosts when missing."),
  provider: required(object(providerFields), "Who signs people in."),
  clientID: required(string(nonEmpty), "What the provider knows the gateway by."),
  clientSecret: optional(
    object({
      name: required(string(dnsSubdomain), "Secret of the same namespace; key client-secret."),
    }),
    "How the gateway proves it. Without one it is a public client, which PKCE alone protects.",
  ),
  clientAuthentication: defaulted(
    enumeration(["client_secret_basic", "client_secret_post"]),
    "client_secret_basic",
    "Where the client secret stands (OpenID Connect Core §9).",
  ),
  scopes: defaulted(list(string(scopeToken)), ["openid"], "What the gateway asks for."),
  resources: optional(list(string(webUrl)), "Resources that the access token is for (RFC 8707)."),
  redirectPath: defaulted(
    string(path),
    "/oauth2/callback",
    "Where the provider sends browsers back to, at the host of the page; of no other use.",
  ),
  logoutPath: defaulted(string(path), "/logout", "Opening it signs out."),
  postLogoutPath: optional(
    string(path),
    "Where the provider sends browsers that have signed out there; the root of the host when missing.",
  ),
  forwardAccessToken: defaulted(boolean(), true, "Pass the access token on, as Authorization: Bearer."),
  refreshToken: defaulted(boolean(), true, "Keep sessions going by refresh tokens, where the provider gives any."),
  defaultTokenTTL: optional(string(duration), "Life of access tokens whose answer says none."),
  cookies: defaulted(
    object({
      sameSite: defaulted(
        enumeration(["Lax", "None"]),
        "Lax",
        "The attribute of all cookies; with Strict no browser would come back from the provider with any.",
      ),
    }),
    { sameSite: "Lax" },
    "The session's cookies.",
  ),
} as const;

type BrowserLoginSpec = ObjectValue<typeof browserLoginFields>;

function pathsDiffer({ redirectPath, logoutPath }: BrowserLoginSpec, report: Report): void {
  if (redirectPath !== logoutPath) return;
  report({ path: ["logoutPath"], message: "is the redirectPath, too: signing out would be signing in" });
}

function sessionIsOpenId({ provider, scopes }: BrowserLoginSpec, report: Report): void {
  if (provider.endSessionEndpoint === undefined || scopes.includes("openid")) return;
  report({
    path: ["scopes"],
    message: "an endSessionEndpoint is of OpenID Connect, and the scope openid is missing",
    suggestion: "Add openid.",
  });
}

export const browserLogin = defineKind({
  kind: "BrowserLogin",
  plural: "browserlogins",
  shortNames: ["bl"],
  apiVersions: ["security.tulle.io/v1alpha1"],
  scope: "Namespaced",
  affects: "routing",
  writtenBy: "user",
  unknownField: "error",
  description: "Pages of a gateway that people sign in for.",
  schema: object(
    {
      metadata: required(subdomainNamedMetadata, "Metadata."),
      spec: required(object(browserLoginFields, { rules: [pathsDiffer, sessionIsOpenId] }), "Where and how."),
    },
    { unread: ["status"] },
  ),
});
