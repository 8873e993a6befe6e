// Registered clients: how they lie in the store and how they are read.
import type { SigningAlgorithm } from "../keys/jwt.ts";
import type { Reader, Transaction } from "./database.ts";

export const grantTypes = ["authorization_code", "refresh_token", "client_credentials"] as const;
export type GrantType = (typeof grantTypes)[number];

export interface Client {
  readonly id: string;
  /** Shown to the resource owner on the consent page. */
  readonly name: string;
  /** Absent for public clients (native and browser applications). */
  readonly secretDigest: string | undefined;
  /** The one before, which passes too until then; absent once that time has come. */
  readonly previousSecret: { readonly digest: string; readonly untilMs: number } | undefined;
  readonly isPublic: boolean;
  /** The operator's own application, which nobody is asked about. */
  readonly isTrusted: boolean;
  readonly redirectUris: readonly string[];
  readonly postLogoutRedirectUris: readonly string[];
  /** Origins of browser applications that may call the token endpoint (CORS). */
  readonly origins: readonly string[];
  readonly scope: readonly string[];
  readonly defaultScope: readonly string[] | undefined;
  /** What the owner cannot leave out where it is asked for, as `openid` anywhere. */
  readonly requiredScope: readonly string[];
  readonly grantTypes: readonly GrantType[];
  /** Values of `resource` that it may ask tokens for; the first is meant when it asks for none. */
  readonly audiences: readonly string[];
  /** Audiences that this client is itself the resource server of: it may introspect tokens meant for them. */
  readonly resourceServerFor: readonly string[];
  /** Extra CSP form-action sources, for clients whose redirect target redirects on. */
  readonly formActionExtras: readonly string[];
  readonly requiresPkce: boolean;
  readonly opaqueTokens: boolean;
  /** `id_token_signed_response_alg` of OpenID Connect's registration; the server's own when undefined. */
  readonly idTokenAlgorithm: SigningAlgorithm | undefined;
  /** Its ID tokens carry what userinfo would tell it (Core §5.4 leaves that to the server). */
  readonly claimsInIdToken: boolean;
  /**
   * Where the server tells it that a session of one of its users has ended (OpenID Connect Back-Channel Logout 1.0
   * §2.2).
   */
  readonly backchannelLogoutUri: string | undefined;
  /**
   * Its refresh tokens end with the sign-in that they came from; otherwise they outlive it, which is what
   * offline_access means.
   */
  readonly refreshEndsWithSession: boolean;
  readonly createdAtMs: number;
  readonly disabledAtMs: number | undefined;
}

interface ClientRow {
  readonly id: string;
  readonly name: string;
  readonly secret_digest: string | null;
  readonly previous_secret_digest: string | null;
  readonly previous_secret_until: number | null;
  readonly is_public: number;
  readonly is_trusted: number;
  readonly redirect_uris: string;
  readonly post_logout_redirect_uris: string;
  readonly origins: string;
  readonly scope: string;
  readonly default_scope: string | null;
  readonly required_scope: string;
  readonly grant_types: string;
  readonly audiences: string;
  readonly resource_server_for: string;
  readonly form_action_extras: string;
  readonly requires_pkce: number;
  readonly opaque_tokens: number;
  readonly id_token_algorithm: SigningAlgorithm | null;
  readonly claims_in_id_token: number;
  readonly backchannel_logout_uri: string | null;
  readonly refresh_ends_with_session: number;
  readonly created_at: number;
  readonly disabled_at: number | null;
}

function list(json: string): readonly string[] {
  return json === "[]" ? [] : (JSON.parse(json) as string[]);
}

function words(text: string): readonly string[] {
  return text === "" ? [] : text.split(" ");
}

function fromRow(row: ClientRow, nowMs: number): Client {
  const { previous_secret_digest: previous, previous_secret_until: until } = row;
  return {
    id: row.id,
    name: row.name,
    secretDigest: row.secret_digest ?? undefined,
    previousSecret:
      previous === null || until === null || until <= nowMs ? undefined : { digest: previous, untilMs: until },
    isPublic: row.is_public === 1,
    isTrusted: row.is_trusted === 1,
    redirectUris: list(row.redirect_uris),
    postLogoutRedirectUris: list(row.post_logout_redirect_uris),
    origins: list(row.origins),
    scope: words(row.scope),
    defaultScope: row.default_scope === null ? undefined : words(row.default_scope),
    requiredScope: words(row.required_scope),
    grantTypes: list(row.grant_types) as readonly GrantType[],
    audiences: list(row.audiences),
    resourceServerFor: list(row.resource_server_for),
    formActionExtras: list(row.form_action_extras),
    requiresPkce: row.requires_pkce === 1,
    opaqueTokens: row.opaque_tokens === 1,
    idTokenAlgorithm: row.id_token_algorithm ?? undefined,
    claimsInIdToken: row.claims_in_id_token === 1,
    backchannelLogoutUri: row.backchannel_logout_uri ?? undefined,
    refreshEndsWithSession: row.refresh_ends_with_session === 1,
    createdAtMs: row.created_at,
    disabledAtMs: row.disabled_at ?? undefined,
  };
}

/** A client that may be used now; undefined when unknown or disabled. */
export async function findClient(reader: Reader, id: string): Promise<Client | undefined> {
  const client = await findAnyClient(reader, id);
  return client?.disabledAtMs === undefined ? client : undefined;
}

export async function findAnyClient(reader: Reader, id: string): Promise<Client | undefined> {
  const row = await reader.get<ClientRow>("SELECT * FROM clients WHERE id = ?", [id]);
  return row === undefined ? undefined : fromRow(row, reader.nowMs);
}

export async function listClients(reader: Reader): Promise<readonly Client[]> {
  return (await reader.all<ClientRow>("SELECT * FROM clients ORDER BY id")).map((row) => fromRow(row, reader.nowMs));
}

export async function isRegisteredOrigin(reader: Reader, origin: string): Promise<boolean> {
  const sql = `SELECT 1 AS found FROM client_origins JOIN clients ON clients.id = client_origins.client_id
    WHERE client_origins.origin = ? AND clients.is_public = 1 AND clients.disabled_at IS NULL LIMIT 1`;
  return (await reader.get(sql, [origin])) !== undefined;
}

/** Inserts or replaces, the secret's digest included. */
export async function saveClient(transaction: Transaction, client: Client): Promise<void> {
  await transaction.run(
    `INSERT INTO clients (id, name, secret_digest, previous_secret_digest, previous_secret_until, is_public, is_trusted, redirect_uris, post_logout_redirect_uris, origins, scope,
      default_scope, grant_types, audiences, resource_server_for, form_action_extras, requires_pkce, opaque_tokens,
      id_token_algorithm, claims_in_id_token, required_scope, backchannel_logout_uri,
      refresh_ends_with_session, created_at, disabled_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (id) DO UPDATE SET name = excluded.name, secret_digest = excluded.secret_digest,
      previous_secret_digest = excluded.previous_secret_digest, previous_secret_until = excluded.previous_secret_until,
      is_public = excluded.is_public, is_trusted = excluded.is_trusted, redirect_uris = excluded.redirect_uris,
      post_logout_redirect_uris = excluded.post_logout_redirect_uris, origins = excluded.origins,
      scope = excluded.scope, default_scope = excluded.default_scope, grant_types = excluded.grant_types,
      audiences = excluded.audiences, resource_server_for = excluded.resource_server_for,
      form_action_extras = excluded.form_action_extras, requires_pkce = excluded.requires_pkce,
      opaque_tokens = excluded.opaque_tokens, id_token_algorithm = excluded.id_token_algorithm,
      claims_in_id_token = excluded.claims_in_id_token,
      required_scope = excluded.required_scope,
      backchannel_logout_uri = excluded.backchannel_logout_uri,
      refresh_ends_with_session = excluded.refresh_ends_with_session, disabled_at = excluded.disabled_at`,
    [
      client.id,
      client.name,
      client.secretDigest ?? null,
      client.previousSecret?.digest ?? null,
      client.previousSecret?.untilMs ?? null,
      client.isPublic ? 1 : 0,
      client.isTrusted ? 1 : 0,
      JSON.stringify(client.redirectUris),
      JSON.stringify(client.postLogoutRedirectUris),
      JSON.stringify(client.origins),
      client.scope.join(" "),
      client.defaultScope?.join(" ") ?? null,
      JSON.stringify(client.grantTypes),
      JSON.stringify(client.audiences),
      JSON.stringify(client.resourceServerFor),
      JSON.stringify(client.formActionExtras),
      client.requiresPkce ? 1 : 0,
      client.opaqueTokens ? 1 : 0,
      client.idTokenAlgorithm ?? null,
      client.claimsInIdToken ? 1 : 0,
      client.requiredScope.join(" "),
      client.backchannelLogoutUri ?? null,
      client.refreshEndsWithSession ? 1 : 0,
      client.createdAtMs,
      client.disabledAtMs ?? null,
    ],
  );
  await transaction.run("DELETE FROM client_origins WHERE client_id = ?", [client.id]);
  for (const origin of client.origins) {
    await transaction.run("INSERT INTO client_origins (origin, client_id) VALUES (?, ?)", [origin, client.id]);
  }
}

/** Deletes the client with everything that was given to it. */
export async function deleteClient(transaction: Transaction, id: string): Promise<boolean> {
  return (await transaction.run("DELETE FROM clients WHERE id = ?", [id])) > 0;
}
