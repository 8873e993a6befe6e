// (snapshot, proxy) → the policies that hold for its workload. Nothing at all when none does, so that such a view stays as it is.
import { policyHolds, rootNamespaces } from "@tulle/config";
import type { MeshSnapshot } from "../snapshot/mesh-snapshot.ts";
import type { Proxy } from "./proxy.ts";
import type { ScopedJwtRule, WorkloadSecurity } from "./proxy-view.ts";

export function workloadSecurity(snapshot: MeshSnapshot, proxy: Proxy): { readonly security?: WorkloadSecurity } {
  const { authorizationPolicies = [], requestAuthentications = [] } = snapshot;
  const policies = rootFirst(authorizationPolicies.filter((policy) => policyHolds(policy, proxy)));
  const jwtRules = rootFirst(requestAuthentications.filter((policy) => policyHolds(policy, proxy)))
    .flatMap((policy) => policy.jwtRules)
    .map(({ location: _location, fetchTimeoutMs: _timeout, ...rule }): ScopedJwtRule => rule)
    // Envoy's answer to a request with several bad tokens tells of the first rule; Istio orders them so.
    .sort((a, b) => (a.issuer < b.issuer ? -1 : a.issuer > b.issuer ? 1 : 0));
  return policies.length === 0 && jwtRules.length === 0 ? {} : { security: { jwtRules, policies } };
}

function rootFirst<T extends { readonly namespace: string }>(policies: readonly T[]): readonly T[] {
  const isRoot = ({ namespace }: T): boolean => rootNamespaces.includes(namespace);
  return [...policies.filter(isRoot), ...policies.filter((policy) => !isRoot(policy))];
}
