// RFC 8707 §2.2: a token request may narrow the resources that were authorized, never widen them.
import type { Refusal } from "../protocol/refusal.ts";
import { refuse } from "../protocol/refusal.ts";
import { audienceFor, requestedResources } from "../protocol/resources.ts";
import type { GrantContext, GrantDraft } from "./draft.ts";

export function requireGrantedResource(draft: GrantDraft, { server }: GrantContext): Refusal | undefined {
  const { config } = server;
  const { client, authorization } = draft;
  // What was authorized; without a resource then, the audience that such a token has anyway.
  const allowed = audienceFor({
    asked: [],
    authorized: authorization!.resources,
    scope: authorization!.scope,
    clientAudiences: client.audiences,
    config,
  });
  const resources = requestedResources(draft.parameters, allowed);
  if (typeof resources === "string") return refuse("invalid_target", resources);
  draft.resources = resources;
  return undefined;
}
