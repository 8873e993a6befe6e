// What ID tokens say of how somebody signed in (OpenID Connect Core §2): a password and nothing else, so `amr` and
// `acr` are facts of the server and no choice of the client.
import type { Config } from "../config/config.ts";

/** RFC 8176 §2. */
export const authenticationMethods: readonly string[] = ["pwd"];

const contexts = "urn:oasis:names:tc:SAML:2.0:ac:classes:";

/** The names that SAML gave to both, which other providers use too: there is no registry of shorter ones. */
export function authenticationContext(config: Pick<Config, "issuer">): string {
  return contexts + (config.issuer.startsWith("https:") ? "PasswordProtectedTransport" : "Password");
}
