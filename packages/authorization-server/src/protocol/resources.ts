// Resource indicators (RFC 8707): which resource servers a token is meant for.
import type { Parameters } from "./parameters.ts";

const maxResources = 10;

/** The resources asked for, each one of `allowed`; or what is wrong with them, in words for the developer. */
export function requestedResources(parameters: Parameters, allowed: readonly string[]): readonly string[] | string {
  const asked = [...new Set(parameters.all("resource"))];
  if (asked.length > maxResources) return `more than ${maxResources} resources were asked for`;
  for (const resource of asked) {
    if (!URL.canParse(resource) || resource.includes("#")) return "a resource is not an absolute URI without fragment";
    if (!allowed.includes(resource)) return `not registered for this client: ${resource}`;
  }
  return asked;
}

/** `aud` of an access token: what is asked for now, what was authorized, the client's own first audience, the default. */
export function audienceFor(
  asked: readonly string[],
  authorized: readonly string[],
  clientAudiences: readonly string[],
  fallback: string,
): readonly string[] {
  if (asked.length > 0) return asked;
  if (authorized.length > 0) return authorized;
  return [clientAudiences[0] ?? fallback];
}
