// What clients discover: RFC 8414 metadata, which is OpenID Connect discovery too, and the key set. What is not
// supported is said where leaving it out would mean that it is.
import { describedScopes, keySetLifeMs } from "../config/config.ts";
import type { Answer } from "../http/messages.ts";
import type { ServerContext } from "../server-context.ts";
import { languageTags } from "../pages/languages.ts";
import { authenticationContext } from "../protocol/authentication-context.ts";
import { grantTypes } from "../store/clients.ts";
import { standardScopes } from "../token/user-claims.ts";

export function metadata(server: ServerContext): Answer {
  const { config, keys } = server;
  const { issuer } = config;
  const body = {
    issuer,
    authorization_endpoint: `${issuer}/authorize`,
    token_endpoint: `${issuer}/token`,
    userinfo_endpoint: `${issuer}/userinfo`,
    jwks_uri: `${issuer}/jwks`,
    revocation_endpoint: `${issuer}/revoke`,
    introspection_endpoint: `${issuer}/introspect`,
    end_session_endpoint: `${issuer}/logout`,
    response_types_supported: ["code"],
    response_modes_supported: ["query", "form_post"],
    grant_types_supported: grantTypes,
    scopes_supported: [...new Set([...standardScopes, "roles", "groups", ...describedScopes(config)])],
    claims_supported: [
      "sub",
      "iss",
      "aud",
      "exp",
      "iat",
      "auth_time",
      "nonce",
      "sid",
      "acr",
      "amr",
      "name",
      "preferred_username",
      "email",
      "email_verified",
      "roles",
      "groups",
    ],
    subject_types_supported: ["public"],
    id_token_signing_alg_values_supported: keys.algorithms,
    code_challenge_methods_supported: ["S256"],
    token_endpoint_auth_methods_supported: ["client_secret_basic", "client_secret_post", "none"],
    revocation_endpoint_auth_methods_supported: ["client_secret_basic", "client_secret_post", "none"],
    introspection_endpoint_auth_methods_supported: ["client_secret_basic", "client_secret_post"],
    ui_locales_supported: languageTags,
    prompt_values_supported: ["none", "login", "consent", "select_account"],
    backchannel_logout_supported: true,
    backchannel_logout_session_supported: true,
    authorization_response_iss_parameter_supported: true,
    acr_values_supported: [authenticationContext(config)],
    claims_parameter_supported: true,
    request_parameter_supported: false,
    // OpenID Connect Discovery §3: true when left out.
    request_uri_parameter_supported: false,
    require_request_uri_registration: false,
  };
  return publicJson(JSON.stringify(body), "application/json");
}

/** RFC 7517 §5. A key is published for longer than twice its life before it signs. */
export function jwks(server: ServerContext): Answer {
  return publicJson(server.keys.jwks, "application/jwk-set+json");
}

function publicJson(body: string, type: string): Answer {
  return {
    status: 200,
    headers: {
      "content-type": type,
      "cache-control": `public, max-age=${keySetLifeMs / 1000}`,
      "access-control-allow-origin": "*",
      "x-content-type-options": "nosniff",
    },
    body,
  };
}
