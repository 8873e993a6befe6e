// An authorization request while its checks go over it. The first table settles where an answer may go at all, the
// second one fills in what is asked for; a field is read only after the row that sets it.
import type { EndpointRequest } from "../http/messages.ts";
import type { Parameters } from "../protocol/parameters.ts";
import type { Client } from "../store/clients.ts";

/** Before client and redirect URI are known, nothing may be redirected. */
export interface AddressDraft {
  readonly parameters: Parameters;
  readonly request: EndpointRequest;
  client: Client | undefined;
  redirectUri: string | undefined;
}

export type ResponseMode = "query" | "form_post";

export interface AuthorizeDraft {
  readonly parameters: Parameters;
  readonly request: EndpointRequest;
  readonly client: Client;
  readonly redirectUri: string;
  readonly redirectUriSent: boolean;
  readonly responseMode: ResponseMode;
  /** `state` as it goes back, encoded. */
  readonly state: string | undefined;
  scope: readonly string[];
  resources: readonly string[];
  codeChallenge: string | undefined;
  prompt: ReadonlySet<string>;
  maxAgeMs: number | undefined;
  /** Whom a verified id_token_hint names, and whom `claims` does: the owner has to be in each. */
  readonly wantedSubjects: ReadonlySet<unknown>[];
  /** What `claims` wants to read in the ID token. */
  idTokenClaims: readonly string[];
}
