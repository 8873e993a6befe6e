// AuthorizationPolicies and RequestAuthentications → their part of the snapshot: scopes settled, each issuer's keys at
// hand or the place to fetch them from.
import { isDryRun, parseDuration, parseKeySet, policyScope } from "@tulle/config";
import type { AuthorizationPolicy, JwtRule, RequestAuthentication } from "@tulle/config";
import type { JwksLocation, MeshAuthorizationPolicy, MeshJwtRule } from "./mesh-snapshot.ts";
import type { MeshRequestAuthentication, MeshSnapshot } from "./mesh-snapshot.ts";

const discoveryPath = "/.well-known/openid-configuration";

type SecurityPolicies = Pick<MeshSnapshot, "authorizationPolicies" | "requestAuthentications">;

export function securityPolicies(
  policies: readonly AuthorizationPolicy[],
  authentications: readonly RequestAuthentication[],
  fetchedKeys: ReadonlyMap<string, string>,
): SecurityPolicies {
  const authorizationPolicies = policies.map(meshAuthorizationPolicy);
  const requestAuthentications = authentications.map((each) => meshRequestAuthentication(each, fetchedKeys));
  return {
    ...(authorizationPolicies.length === 0 ? {} : { authorizationPolicies }),
    ...(requestAuthentications.length === 0 ? {} : { requestAuthentications }),
  };
}

/** What key sets are known by. */
export function jwksLocationKey({ url, isDiscovery }: JwksLocation): string {
  return isDiscovery ? `discovery of ${url}` : url;
}

function meshAuthorizationPolicy(resource: AuthorizationPolicy): MeshAuthorizationPolicy {
  const scope = policyScope(resource);
  const { metadata, spec } = resource;
  const { action = "ALLOW", rules = [], provider } = spec;
  const dryRun = isDryRun(metadata.annotations);
  const ofProvider = provider === undefined ? {} : { provider: provider.name };
  return { name: metadata.name, ...scope, action, dryRun, rules, ...ofProvider };
}

function meshRequestAuthentication(
  resource: RequestAuthentication,
  fetchedKeys: ReadonlyMap<string, string>,
): MeshRequestAuthentication {
  const scope = policyScope(resource);
  const jwtRules = (resource.spec.jwtRules ?? []).map((rule) => meshJwtRule(rule, fetchedKeys));
  return { name: resource.metadata.name, ...scope, jwtRules };
}

function meshJwtRule(rule: JwtRule, fetchedKeys: ReadonlyMap<string, string>): MeshJwtRule {
  const { jwks: inline, jwks_uri: olderSpelling, jwksUri = olderSpelling, timeout, ...rest } = rule;
  if (inline !== undefined) {
    const keys = parseKeySet(inline);
    return "text" in keys ? { ...rest, jwks: keys.text } : rest;
  }
  const location: JwksLocation =
    jwksUri === undefined
      ? { url: `${rule.issuer.replace(/\/$/, "")}${discoveryPath}`, isDiscovery: true }
      : { url: jwksUri, isDiscovery: false };
  const jwks = fetchedKeys.get(jwksLocationKey(location));
  const fetchTimeoutMs = timeout === undefined ? undefined : parseDuration(timeout);
  return {
    ...rest,
    ...(jwks === undefined ? {} : { jwks }),
    location,
    ...(fetchTimeoutMs === undefined ? {} : { fetchTimeoutMs }),
  };
}
