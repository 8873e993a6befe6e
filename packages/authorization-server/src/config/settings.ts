// Every setting of the authorization server in one table: from it come the flags, the environment variables, the keys
// of the configuration file, their checks, and the help text.
import { languageTags } from "../pages/languages.ts";
import { parseDurationMs } from "./durations.ts";

export interface Setting {
  readonly name: string;
  readonly kind: "text" | "flag" | "number" | "duration" | "list" | "map" | "choice";
  readonly choices?: readonly string[];
  readonly fallback: string;
  readonly help: string;
}

const text = (name: string, fallback: string, help: string): Setting => ({ name, kind: "text", fallback, help });
const flag = (name: string, help: string): Setting => ({ name, kind: "flag", fallback: "false", help });
const duration = (name: string, fallback: string, help: string): Setting => ({
  name,
  kind: "duration",
  fallback,
  help,
});
const number = (name: string, fallback: string, help: string): Setting => ({ name, kind: "number", fallback, help });

export const settings: readonly Setting[] = [
  text(
    "issuer",
    "",
    "Public base URL of the server, of which every address and every `iss` is made; http://localhost:PORT when empty",
  ),
  text("name", "", "What the pages call the server, such as the name of the organisation; its host alone when empty"),
  text("host", "127.0.0.1", "Address to listen on"),
  number("port", "9400", "Port to listen on; 0 takes a free one"),
  text("data-dir", ".tulle/authorization-server", "Folder of the SQLite database and the key encryption key"),
  text("database", "", "postgres://… to use PostgreSQL instead of SQLite in the data directory"),
  text(
    "key-encryption-key-file",
    "",
    "File with 32 bytes as base64 that seals signing keys; made in the data directory for SQLite, needed for PostgreSQL",
  ),
  flag(
    "strict",
    "Prefer the RFCs where the compatible behaviour differs (docs/authorization-server.md lists the effects)",
  ),
  flag(
    "errors-after-sign-in",
    "Send the error of a failed authorization request to the client only after sign-in; for open registration of clients",
  ),
  flag("demo", "Make a demo client and user with random passwords; only for a loopback issuer"),
  text("demo-password", "", "Password of the demo user; random when empty"),
  text("demo-client-secret", "", "Secret of the demo client, where that cannot read the file of it; random when empty"),
  text("demo-redirect-uri", "", "Redirect URI of the demo client; ISSUER/demo/callback when empty"),
  text("demo-post-logout-redirect-uri", "", "Where a logout of the demo client may lead"),
  {
    name: "demo-gateway-redirect-uris",
    kind: "list",
    fallback: "",
    help: "Redirect URIs of a second demo client, a gateway without a secret that signs browsers in; none when empty",
  },
  {
    name: "demo-gateway-post-logout-redirect-uris",
    kind: "list",
    fallback: "",
    help: "Where a logout of that gateway may lead",
  },
  text("default-audience", "", "`aud` of access tokens when no resource is asked for; the issuer when empty"),
  {
    name: "scopes",
    kind: "map",
    fallback: "",
    help: "What scopes mean, for the consent page: `orders.read=See your orders;orders.read#de=…`",
  },
  {
    name: "language",
    kind: "choice",
    choices: languageTags,
    fallback: "en",
    help: "Language of the pages for whom neither `ui_locales` nor the browser names one that is there",
  },
  {
    name: "trusted-proxies",
    kind: "list",
    fallback: "",
    help: "Addresses or CIDR ranges whose X-Forwarded-For is believed",
  },
  {
    name: "signing-algorithm",
    kind: "choice",
    choices: ["RS256", "ES256"],
    fallback: "RS256",
    help: "Algorithm of tokens where neither the client (ID tokens) nor `audience-tokens` (access tokens) names one",
  },
  {
    name: "audience-tokens",
    kind: "map",
    fallback: "",
    help: "Algorithm and type of access tokens by audience: `https://api.example=ES256 at+jwt;…`",
  },
  duration("key-rotation", "30d", "How long a key signs"),
  duration("key-publish-ahead", "1d", "How long the next key is published before it signs"),
  duration("code-lifetime", "60s", "Life of an authorization code, 10m at most"),
  duration("access-token-lifetime", "5m", "Life of an access token"),
  duration("id-token-lifetime", "5m", "Life of an ID token"),
  duration("refresh-token-lifetime", "30d", "Life of a refresh token that is not used"),
  duration("session-lifetime", "7d", "Longest life of a sign-in"),
  duration("session-idle", "1d", "Life of a sign-in that is not used"),
  duration("interaction-lifetime", "15m", "Time to sign in and to answer the consent page"),
  duration("consent-lifetime", "90d", "How long consent is remembered"),
  duration("audit-lifetime", "90d", "How long audit events are kept"),
  // OWASP's first choice for argon2id: 19 MiB, two passes.
  number("password-memory-kib", "19456", "Memory of one argon2id hash"),
  number("password-iterations", "2", "Passes of one argon2id hash"),
  {
    name: "metrics",
    kind: "choice",
    choices: ["loopback", "any", "off"],
    fallback: "loopback",
    help: "Who may read /metrics",
  },
  {
    name: "log-format",
    kind: "choice",
    choices: ["text", "json"],
    fallback: "text",
    help: "Form of log lines on standard error",
  },
  {
    name: "log-level",
    kind: "choice",
    choices: ["trace", "debug", "info", "warning", "error", "critical", "off"],
    fallback: "info",
    help: "Least severe level that is written",
  },
];

export const environmentPrefix = "TULLE_AUTH_";

export function environmentName(setting: Setting): string {
  return environmentPrefix + setting.name.toUpperCase().replaceAll("-", "_");
}

/** Why `value` does not fit the setting; undefined when it does. */
export function valueProblem(setting: Setting, value: string): string | undefined {
  switch (setting.kind) {
    case "flag":
      return ["true", "false"].includes(value) ? undefined : "is neither true nor false";
    case "number":
      return /^\d{1,9}$/.test(value) ? undefined : "is no whole number";
    case "duration":
      return parseDurationMs(value) === undefined ? "is no duration such as 60s, 5m, 12h or 30d" : undefined;
    case "choice":
      return setting.choices!.includes(value) ? undefined : `is not one of ${setting.choices!.join(", ")}`;
    case "map":
      return value === "" || value.split(";").every((entry) => /^[^=\s]+=.+$/.test(entry.trim()))
        ? undefined
        : "is not of the form name=text;name=text";
    case "text":
    case "list":
      return undefined;
    default:
      throw new Error(`no such kind of setting: ${String(setting.kind satisfies never)}`);
  }
}
