// RFC 8707 §2.2: a token request may narrow the resources that were authorized, never widen them.
import type { Config } from "../config/config.ts";
import type { Refusal } from "../protocol/refusal.ts";
import { refuse } from "../protocol/refusal.ts";
import { audienceFor, requestedResources } from "../protocol/resources.ts";
import type { GrantContext, GrantDraft } from "./draft.ts";

/** What the client is not registered for (any more) goes, whatever was authorized before. */
export function authorizedResources(
  { client, authorization }: GrantDraft,
  { defaultAudience, issuer }: Config,
): readonly string[] {
  const registered = new Set([...client.audiences, defaultAudience, issuer]);
  return (authorization?.resources ?? []).filter((resource) => registered.has(resource));
}

export function requireGrantedResource(draft: GrantDraft, { server }: GrantContext): Refusal | undefined {
  const { config } = server;
  const { client, authorization } = draft;
  const authorized = authorizedResources(draft, config);
  if (authorized.length === 0 && authorization!.resources.length > 0)
    return refuse("invalid_target", "the client is no longer registered for what the owner granted");
  // What was authorized; without a resource then, the audience that such a token has anyway.
  const allowed = audienceFor({
    asked: [],
    authorized,
    scope: authorization!.scope,
    clientAudiences: client.audiences,
    config,
  });
  const resources = requestedResources(draft.parameters, allowed);
  if (typeof resources === "string") return refuse("invalid_target", resources);
  draft.resources = resources;
  return undefined;
}
