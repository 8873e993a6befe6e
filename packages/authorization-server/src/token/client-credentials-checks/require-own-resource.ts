// RFC 8707 §2: the audiences that the client is registered for.
import { requestedResources } from "../../protocol/resources.ts";
import { refuse } from "../../protocol/refusal.ts";
import type { Refusal } from "../../protocol/refusal.ts";
import type { ClientCredentialsDraft, GrantContext } from "../draft.ts";

export function requireOwnResource(draft: ClientCredentialsDraft, { server }: GrantContext): Refusal | undefined {
  const resources = requestedResources(draft.parameters, [...draft.client.audiences, server.config.defaultAudience]);
  if (typeof resources === "string") return refuse("invalid_target", resources);
  draft.resources = resources;
  return undefined;
}
