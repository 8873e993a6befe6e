// What is left of a rule where there are connections and no requests (Istio: authz/model, rules for TCP).
import {
  type AuthorizationOperation,
  type AuthorizationRule,
  type AuthorizationSource,
  claimPath,
  headerOfKey,
} from "@tulle/config";
import type { MeshAuthorizationPolicy } from "../../snapshot/mesh-snapshot.ts";

const requestKeys = new Set(["request.auth.principal", "request.auth.audiences", "request.auth.presenter"]);

/**
 * Conditions on requests cannot be judged. A rule of ALLOW that has any is left out, since it would allow more than it
 * says; in the other actions the conditions are left out, so that more is denied or marked than they say and never
 * less.
 */
export function connectionRule(
  rule: AuthorizationRule,
  action: MeshAuthorizationPolicy["action"],
): AuthorizationRule | undefined {
  const { from = [], to = [], when = [] } = rule;
  const left: AuthorizationRule = {
    from: from.map(({ source }) => ({ source: withoutRequest(source) })),
    to: to.map(({ operation }) => ({ operation: connectionOperation(operation) })),
    when: when.filter(({ key }) => !isRequestKey(key)),
  };
  const size = (each: AuthorizationRule): number =>
    (each.when ?? []).length +
    (each.from ?? []).reduce((sum, { source }) => sum + fieldCount(source), 0) +
    (each.to ?? []).reduce((sum, { operation }) => sum + fieldCount(operation), 0);
  return action === "ALLOW" && size(left) !== size(rule) ? undefined : left;
}

function withoutRequest(source: AuthorizationSource): AuthorizationSource {
  const { requestPrincipals: _wanted, notRequestPrincipals: _unwanted, ...rest } = source;
  return rest;
}

function connectionOperation({ ports, notPorts }: AuthorizationOperation): AuthorizationOperation {
  return { ...(ports === undefined ? {} : { ports }), ...(notPorts === undefined ? {} : { notPorts }) };
}

function isRequestKey(key: string): boolean {
  return requestKeys.has(key) || headerOfKey(key) !== undefined || claimPath(key) !== undefined;
}

/** An empty list asks for nothing. */
function fieldCount(fields: object): number {
  return Object.values(fields).filter((value) => !Array.isArray(value) || value.length > 0).length;
}
