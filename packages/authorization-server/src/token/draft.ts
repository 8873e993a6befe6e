// A token request while checks go over it: those of its grant inside the transaction that will consume the grant.
import type { Parameters } from "../protocol/parameters.ts";
import type { ServerContext } from "../server-context.ts";
import type { Authorization } from "../store/authorizations.ts";
import type { Client } from "../store/clients.ts";
import type { Transaction } from "../store/database.ts";
import type { RefreshToken } from "../store/refresh-tokens.ts";

export interface GrantContext {
  readonly server: ServerContext;
  readonly transaction: Transaction;
}

/** Before the client is known. */
export interface GrantTypeDraft {
  readonly parameters: Parameters;
}

export interface RegisteredGrantTypeDraft extends GrantTypeDraft {
  readonly client: Client;
}

export interface GrantDraft {
  readonly parameters: Parameters;
  readonly client: Client;
  authorization: Authorization | undefined;
  resources: readonly string[];
}

export interface CodeDraft extends GrantDraft {
  /** Set when the right client has presented a code that was redeemed before: what it gave must end. */
  replayed: boolean;
}

export interface RefreshDraft extends GrantDraft {
  refreshToken: RefreshToken | undefined;
  scope: readonly string[];
  successor: string | undefined;
  /** Set when a rotated token came back after its grace: its whole family must end. */
  reused: boolean;
}

export interface ClientCredentialsDraft extends GrantDraft {
  scope: readonly string[];
}
