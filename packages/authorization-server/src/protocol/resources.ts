// Resource indicators (RFC 8707): which resource servers a token is meant for.
import type { Config } from "../config/config.ts";
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

export interface AudienceChoice {
  /** Values of `resource` in this request, and in the one that the owner allowed. */
  readonly asked: readonly string[];
  readonly authorized: readonly string[];
  readonly scope: readonly string[];
  readonly clientAudiences: readonly string[];
  readonly config: Pick<Config, "defaultAudience" | "issuer">;
}

/**
 * `aud` of an access token: what is asked for now, what was authorized, else the client's own first audience or the
 * default one; and then, with the scope openid, the issuer too, since clients that name no resource expect userinfo to
 * take their token.
 */
export function audienceFor({ asked, authorized, scope, clientAudiences, config }: AudienceChoice): readonly string[] {
  if (asked.length > 0) return asked;
  if (authorized.length > 0) return authorized;
  const own = clientAudiences[0] ?? config.defaultAudience;
  return scope.includes("openid") && own !== config.issuer ? [own, config.issuer] : [own];
}
