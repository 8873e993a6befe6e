// Which DestinationRules hold for a Service when a proxy of some namespace calls it.
import { mostSpecific } from "../snapshot/host-match.ts";
import type { MeshDestinationRule, MeshService } from "../snapshot/mesh-snapshot.ts";
import type { EffectiveRule } from "./proxy-view.ts";

/** Namespaces whose rules hold for everyone. */
export const rootNamespaces: readonly string[] = ["tulle-system", "istio-system"];

/**
 * Rules of the client's namespace come first, then those of the Service's, then those of a root namespace; within one, the
 * narrowest host wins (Istio: PushContext.destinationRule). Several rules of that namespace for the same host count as one:
 * the first one's policy, the subsets of all.
 */
export function effectiveRule(
  rules: readonly MeshDestinationRule[],
  service: MeshService,
  clientNamespace: string,
): EffectiveRule | undefined {
  for (const namespace of [clientNamespace, service.namespace, ...rootNamespaces]) {
    const candidates = rules.filter((rule) => rule.namespace === namespace);
    const found = mostSpecific(candidates, service.hostname, (rule) => rule.host);
    if (found === undefined) continue;
    const same = candidates.filter((rule) => rule.host === found.host);
    const names = new Set<string>();
    const subsets = same.flatMap((rule) => rule.subsets).filter(({ name }) => !names.has(name) && names.add(name));
    const trafficPolicy = same.find((rule) => rule.trafficPolicy !== undefined)?.trafficPolicy;
    return { name: found.name, namespace, ...(trafficPolicy === undefined ? {} : { trafficPolicy }), subsets };
  }
  return undefined;
}
