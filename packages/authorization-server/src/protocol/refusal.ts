// A refusal is the protocol's way of saying no: a value that every check may return and that each endpoint turns into
// its own kind of answer (a page, a redirect, a JSON body).

/** Error codes of RFC 6749 §4.1.2.1 and §5.2, OpenID Connect Core §3.1.2.6, RFC 8707 §2 and RFC 6750 §3.1. */
export type OAuthError =
  | "invalid_request"
  | "invalid_client"
  | "invalid_grant"
  | "unauthorized_client"
  | "unsupported_grant_type"
  | "unsupported_response_type"
  | "invalid_scope"
  | "invalid_target"
  | "access_denied"
  | "server_error"
  | "temporarily_unavailable"
  | "login_required"
  | "consent_required"
  | "interaction_required"
  | "account_selection_required"
  | "unmet_authentication_requirements"
  | "request_not_supported"
  | "request_uri_not_supported"
  | "registration_not_supported"
  | "unsupported_token_type"
  | "invalid_token"
  | "insufficient_scope";

export interface Refusal {
  readonly error: OAuthError;
  /** For the client's developer; sent, so it never holds a secret or anything that the requester did not know. */
  readonly description: string;
  /** For the operator; written to the audit log only. Absent where the description says it all. */
  readonly reason?: string;
  /** Seconds after which another attempt is worthwhile: the answer becomes 429 with `Retry-After`. */
  readonly retryAfterSeconds?: number;
}

export function refuse(error: OAuthError, description: string, reason?: string): Refusal {
  return reason === undefined ? { error, description } : { error, description, reason };
}

/** RFC 6749 §4.1.2.1: descriptions hold %x20-21 / %x23-5B / %x5D-7E only; anything else becomes `'` or `?`. */
export function printableDescription(text: string): string {
  return text.replace(/["\\]/g, "'").replace(/[^\x20-\x21\x23-\x5b\x5d-\x7e]/g, "?");
}
