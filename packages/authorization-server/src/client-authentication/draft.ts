// A request of a client to the token, introspection or revocation endpoint while it is being recognized.
import type { EndpointRequest } from "../http/messages.ts";
import type { Parameters } from "../protocol/parameters.ts";
import type { Client } from "../store/clients.ts";

export interface Credentials {
  readonly clientId: string;
  readonly secret: string | undefined;
}

export interface ClientDraft {
  readonly parameters: Parameters;
  readonly request: EndpointRequest;
  /** What `Authorization: Basic` says, in the readings to try in turn; empty without that header. */
  basic: readonly Credentials[];
  client: Client | undefined;
}

/** The id that the client gives itself, by whichever method; for throttling and the audit log. */
export function claimedClientId(draft: ClientDraft): string | undefined {
  return draft.basic[0]?.clientId ?? draft.parameters.get("client_id");
}
