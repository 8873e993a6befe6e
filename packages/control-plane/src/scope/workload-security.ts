// (snapshot, proxy) → the policies that hold for its workload. Nothing at all when none does, so that such a view stays
// as it is.
import { policyHolds, type PolicyScope, rootNamespaces } from "@tulle/config";
import type { MeshSnapshot } from "../snapshot/mesh-snapshot.ts";
import type { Proxy } from "./proxy.ts";
import type { ScopedJwtRule, WorkloadSecurity } from "./proxy-view.ts";

/** By the numbers of the policies: workloads with the same ones share one object, and what is made of it. */
const bySnapshot = new WeakMap<MeshSnapshot, Map<string, WorkloadSecurity>>();

export function workloadSecurity(
  snapshot: MeshSnapshot,
  workload: Pick<Proxy, "namespace" | "labels">,
): { readonly security?: WorkloadSecurity } {
  const { authorizationPolicies = [], requestAuthentications = [] } = snapshot;
  const policyNumbers = numbersOf(authorizationPolicies, workload);
  const authenticationNumbers = numbersOf(requestAuthentications, workload);
  if (policyNumbers.length === 0 && authenticationNumbers.length === 0) return {};
  let known = bySnapshot.get(snapshot);
  if (known === undefined) bySnapshot.set(snapshot, (known = new Map()));
  const numbers = `${policyNumbers.join()} ${authenticationNumbers.join()}`;
  let security = known.get(numbers);
  if (security === undefined) {
    const jwtRules = rootFirst(authenticationNumbers.map((number) => requestAuthentications[number]!))
      .flatMap((policy) => policy.jwtRules)
      .map(({ location: _location, fetchTimeoutMs: _timeout, ...rule }): ScopedJwtRule => rule)
      // Envoy's answer to a request with several bad tokens tells of the first rule; Istio orders them so.
      .sort((a, b) => (a.issuer < b.issuer ? -1 : a.issuer > b.issuer ? 1 : 0));
    const policies = rootFirst(policyNumbers.map((number) => authorizationPolicies[number]!));
    const named = (snapshot.authorizers ?? []).filter(({ name }) => policies.some(({ provider }) => provider === name));
    security = { jwtRules, policies, ...(named.length === 0 ? {} : { authorizers: named }) };
    known.set(numbers, security);
  }
  return security.policies.length === 0 && security.jwtRules.length === 0 ? {} : { security };
}

function numbersOf(policies: readonly PolicyScope[], workload: Pick<Proxy, "namespace" | "labels">): readonly number[] {
  return policies.flatMap((policy, number) => (policyHolds(policy, workload) ? [number] : []));
}

function rootFirst<T extends { readonly namespace: string }>(policies: readonly T[]): readonly T[] {
  const isRoot = ({ namespace }: T): boolean => rootNamespaces.includes(namespace);
  return [...policies.filter(isRoot), ...policies.filter((policy) => !isRoot(policy))];
}
