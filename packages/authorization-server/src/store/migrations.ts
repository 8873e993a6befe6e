// The schema, as forward-only steps. A database whose schema is newer than this program is refused, since an old
// program cannot know what the new columns mean.
import type { Database } from "./database.ts";

interface Migration {
  readonly version: number;
  readonly name: string;
  readonly sql: string;
}

// Times are milliseconds since 1970, lists are JSON, flags are 0 or 1; secrets appear as SHA-256 digests only.
export const migrations: readonly Migration[] = [
  {
    version: 1,
    name: "first schema",
    sql: `
CREATE TABLE clients (
  id TEXT PRIMARY KEY,
  name TEXT NOT NULL,
  secret_digest TEXT,
  is_public INTEGER NOT NULL,
  redirect_uris TEXT NOT NULL,
  post_logout_redirect_uris TEXT NOT NULL,
  origins TEXT NOT NULL,
  scope TEXT NOT NULL,
  default_scope TEXT,
  grant_types TEXT NOT NULL,
  audiences TEXT NOT NULL,
  resource_server_for TEXT NOT NULL,
  form_action_extras TEXT NOT NULL,
  requires_pkce INTEGER NOT NULL,
  opaque_tokens INTEGER NOT NULL,
  created_at BIGINT NOT NULL,
  disabled_at BIGINT
);
CREATE TABLE client_origins (
  origin TEXT NOT NULL,
  client_id TEXT NOT NULL REFERENCES clients (id) ON DELETE CASCADE,
  PRIMARY KEY (origin, client_id)
);
CREATE TABLE users (
  id TEXT PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  display_name TEXT,
  email TEXT,
  password_hash TEXT NOT NULL,
  password_changed_at BIGINT NOT NULL,
  created_at BIGINT NOT NULL,
  disabled_at BIGINT
);
CREATE TABLE sessions (
  id TEXT PRIMARY KEY,
  secret_digest TEXT NOT NULL UNIQUE,
  user_id TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  authenticated_at BIGINT NOT NULL,
  created_at BIGINT NOT NULL,
  seen_at BIGINT NOT NULL,
  expires_at BIGINT NOT NULL,
  user_agent TEXT NOT NULL,
  address TEXT NOT NULL
);
CREATE INDEX sessions_user ON sessions (user_id);
CREATE INDEX sessions_expiry ON sessions (expires_at);
CREATE TABLE interactions (
  id_digest TEXT PRIMARY KEY,
  browser_digest TEXT NOT NULL,
  purpose TEXT NOT NULL,
  parameters TEXT NOT NULL,
  session_id TEXT,
  created_at BIGINT NOT NULL,
  expires_at BIGINT NOT NULL
);
CREATE INDEX interactions_expiry ON interactions (expires_at);
CREATE TABLE grants (
  id TEXT PRIMARY KEY,
  user_id TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  client_id TEXT NOT NULL REFERENCES clients (id) ON DELETE CASCADE,
  scope TEXT NOT NULL,
  resources TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  updated_at BIGINT NOT NULL,
  expires_at BIGINT NOT NULL,
  UNIQUE (user_id, client_id)
);
CREATE INDEX grants_client ON grants (client_id);
CREATE INDEX grants_expiry ON grants (expires_at);
CREATE TABLE authorizations (
  id TEXT PRIMARY KEY,
  code_digest TEXT NOT NULL UNIQUE,
  client_id TEXT NOT NULL REFERENCES clients (id) ON DELETE CASCADE,
  user_id TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  grant_id TEXT NOT NULL,
  session_id TEXT NOT NULL,
  redirect_uri TEXT NOT NULL,
  redirect_uri_sent INTEGER NOT NULL,
  scope_asked TEXT,
  scope TEXT NOT NULL,
  resources TEXT NOT NULL,
  code_challenge TEXT,
  nonce TEXT,
  authenticated_at BIGINT NOT NULL,
  created_at BIGINT NOT NULL,
  code_expires_at BIGINT NOT NULL,
  code_consumed_at BIGINT,
  revoked_at BIGINT,
  revoked_because TEXT,
  expires_at BIGINT NOT NULL
);
CREATE INDEX authorizations_user_grant ON authorizations (user_id, grant_id);
CREATE INDEX authorizations_expiry ON authorizations (expires_at);
CREATE TABLE refresh_tokens (
  token_digest TEXT PRIMARY KEY,
  authorization_id TEXT NOT NULL REFERENCES authorizations (id) ON DELETE CASCADE,
  issued_at BIGINT NOT NULL,
  expires_at BIGINT NOT NULL,
  used_at BIGINT,
  successor_digest TEXT,
  successor_sealed TEXT
);
CREATE INDEX refresh_tokens_authorization ON refresh_tokens (authorization_id);
CREATE INDEX refresh_tokens_expiry ON refresh_tokens (expires_at);
CREATE TABLE access_tokens (
  token_digest TEXT PRIMARY KEY,
  id TEXT NOT NULL,
  authorization_id TEXT REFERENCES authorizations (id) ON DELETE CASCADE,
  client_id TEXT NOT NULL REFERENCES clients (id) ON DELETE CASCADE,
  subject TEXT NOT NULL,
  scope TEXT NOT NULL,
  audience TEXT NOT NULL,
  issued_at BIGINT NOT NULL,
  expires_at BIGINT NOT NULL
);
CREATE INDEX access_tokens_expiry ON access_tokens (expires_at);
CREATE INDEX access_tokens_authorization ON access_tokens (authorization_id);
CREATE TABLE revoked_tokens (
  id TEXT PRIMARY KEY,
  expires_at BIGINT NOT NULL
);
CREATE INDEX revoked_tokens_expiry ON revoked_tokens (expires_at);
CREATE TABLE signing_keys (
  id TEXT PRIMARY KEY,
  algorithm TEXT NOT NULL,
  public_jwk TEXT NOT NULL,
  private_sealed TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  activated_at BIGINT,
  retired_at BIGINT,
  removed_after BIGINT
);
CREATE TABLE facts (
  name TEXT PRIMARY KEY,
  value TEXT NOT NULL
);
CREATE TABLE throttles (
  id TEXT PRIMARY KEY,
  failures INTEGER NOT NULL,
  last_failure_at BIGINT NOT NULL,
  expires_at BIGINT NOT NULL
);
CREATE INDEX throttles_expiry ON throttles (expires_at);
CREATE TABLE audit_events (
  id TEXT PRIMARY KEY,
  at BIGINT NOT NULL,
  event TEXT NOT NULL,
  error_id TEXT,
  error TEXT,
  description TEXT,
  reason TEXT,
  client_id TEXT,
  user_id TEXT,
  address TEXT,
  expires_at BIGINT NOT NULL
);
CREATE INDEX audit_events_at ON audit_events (at);
CREATE INDEX audit_events_error_id ON audit_events (error_id);
CREATE INDEX audit_events_expiry ON audit_events (expires_at);
`,
  },
  {
    version: 2,
    name: "two lives of signing keys",
    // Running servers lengthen the lives of live keys to what they need; retired ones keep those of a server with
    // default settings, 7 days of sessions among them, or what they had if that was longer.
    sql: `
ALTER TABLE signing_keys ADD COLUMN token_life BIGINT NOT NULL DEFAULT 0;
ALTER TABLE signing_keys ADD COLUMN hint_life BIGINT NOT NULL DEFAULT 0;
UPDATE signing_keys SET token_life = removed_after - retired_at WHERE retired_at IS NOT NULL;
UPDATE signing_keys SET hint_life = token_life + 604800000, private_sealed = '' WHERE retired_at IS NOT NULL;
ALTER TABLE signing_keys DROP COLUMN removed_after;
`,
  },
  {
    version: 3,
    name: "interactions of an owner, repeated audit events",
    sql: `
ALTER TABLE interactions ADD COLUMN user_id TEXT;
CREATE INDEX interactions_user ON interactions (user_id, created_at);
ALTER TABLE audit_events ADD COLUMN occurrences BIGINT NOT NULL DEFAULT 1;
ALTER TABLE audit_events ADD COLUMN last_at BIGINT;
`,
  },
  {
    version: 4,
    name: "algorithms and claims of clients and users",
    sql: `
ALTER TABLE clients ADD COLUMN id_token_algorithm TEXT;
ALTER TABLE clients ADD COLUMN claims_in_id_token INTEGER NOT NULL DEFAULT 0;
ALTER TABLE users ADD COLUMN email_verified INTEGER NOT NULL DEFAULT 0;
ALTER TABLE users ADD COLUMN claims TEXT NOT NULL DEFAULT '{}';
ALTER TABLE authorizations DROP COLUMN scope_asked;
`,
  },
  {
    version: 5,
    name: "choice of scopes",
    sql: `
ALTER TABLE clients ADD COLUMN required_scope TEXT NOT NULL DEFAULT '';
ALTER TABLE grants ADD COLUMN declined TEXT NOT NULL DEFAULT '';
`,
  },
  {
    version: 6,
    name: "looks of clients",
    sql: `
CREATE TABLE client_looks (
  client_id TEXT PRIMARY KEY REFERENCES clients (id) ON DELETE CASCADE,
  colour TEXT,
  logo TEXT
);
`,
  },
  {
    version: 7,
    name: "trusted clients, two live secrets",
    sql: `
ALTER TABLE clients ADD COLUMN is_trusted INTEGER NOT NULL DEFAULT 0;
ALTER TABLE clients ADD COLUMN previous_secret_digest TEXT;
ALTER TABLE clients ADD COLUMN previous_secret_until BIGINT;
ALTER TABLE grants ADD COLUMN by_owner INTEGER NOT NULL DEFAULT 1;
`,
  },
  {
    version: 8,
    name: "claims that requests ask for, sessions that clients hear of",
    // `logout_notices` has no reference to users: their deletion is news too.
    sql: `
ALTER TABLE authorizations ADD COLUMN id_token_claims TEXT NOT NULL DEFAULT '[]';
ALTER TABLE clients ADD COLUMN backchannel_logout_uri TEXT;
ALTER TABLE clients ADD COLUMN refresh_ends_with_session INTEGER NOT NULL DEFAULT 0;
CREATE TABLE session_clients (
  session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
  client_id TEXT NOT NULL REFERENCES clients (id) ON DELETE CASCADE,
  PRIMARY KEY (session_id, client_id)
);
CREATE INDEX session_clients_client ON session_clients (client_id);
CREATE TABLE logout_notices (
  session_id TEXT NOT NULL,
  client_id TEXT NOT NULL REFERENCES clients (id) ON DELETE CASCADE,
  user_id TEXT NOT NULL,
  attempts INTEGER NOT NULL,
  due_at BIGINT NOT NULL,
  PRIMARY KEY (session_id, client_id)
);
CREATE INDEX logout_notices_due ON logout_notices (due_at);
CREATE INDEX logout_notices_client ON logout_notices (client_id, due_at);
`,
  },
];

const versionsTable = `CREATE TABLE IF NOT EXISTS schema_versions (
  version INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  applied_at BIGINT NOT NULL
)`;

/** Brings the schema up to date, under a lock that other processes' migrations wait for. */
export async function migrate(database: Database): Promise<void> {
  await database.transaction(async (transaction) => {
    await transaction.lock("migrations");
    await database.script(transaction, versionsTable);
    const row = await transaction.get<{ version: number | null }>(
      "SELECT max(version) AS version FROM schema_versions",
    );
    const current = row?.version ?? 0;
    const newest = migrations.at(-1)!.version;
    if (current > newest) {
      throw new Error(
        `the database has schema version ${current} and this program knows ${newest}: run the newer program, or restore a backup`,
      );
    }
    for (const migration of migrations) {
      if (migration.version <= current) continue;
      await database.script(transaction, migration.sql);
      await transaction.run("INSERT INTO schema_versions (version, name, applied_at) VALUES (?, ?, ?)", [
        migration.version,
        migration.name,
        transaction.nowMs,
      ]);
    }
  });
}
