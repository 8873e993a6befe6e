// RFC 8707 §2: resources are absolute URIs without fragment, and only those that the client is registered for.
import { requestedResources } from "../../protocol/resources.ts";
import { refuse } from "../../protocol/refusal.ts";
import type { Refusal } from "../../protocol/refusal.ts";
import type { ServerContext } from "../../server-context.ts";
import type { AuthorizeDraft } from "../draft.ts";

export function requireAllowedResource(draft: AuthorizeDraft, { config }: ServerContext): Refusal | undefined {
  const allowed = [...draft.client.audiences, config.defaultAudience, config.issuer];
  const resources = requestedResources(draft.parameters, allowed);
  if (typeof resources === "string") return refuse("invalid_target", resources);
  draft.resources = resources;
  return undefined;
}
