// Which DestinationRules hold for a Service when a proxy of some namespace calls it.
import { rootNamespaces } from "@tulle/config";
import { HostIndex } from "../snapshot/host-match.ts";
import type { MeshDestinationRule, MeshService } from "../snapshot/mesh-snapshot.ts";
import type { EffectiveRule } from "./proxy-view.ts";

/** Rules of each namespace, by host and merged. */
type RuleIndex = ReadonlyMap<string, HostIndex<EffectiveRule>>;

const indexes = new WeakMap<readonly MeshDestinationRule[], RuleIndex>();

/**
 * Rules of the client's namespace come first, then those of the Service's, then those of a root namespace; within one, the
 * narrowest host wins (Istio: PushContext.destinationRule).
 */
export function effectiveRule(
  rules: readonly MeshDestinationRule[],
  service: MeshService,
  clientNamespace: string,
): EffectiveRule | undefined {
  const index = indexOf(rules);
  for (const namespace of [clientNamespace, service.namespace, ...rootNamespaces]) {
    const found = index.get(namespace)?.find(service.hostname);
    if (found !== undefined) return found;
  }
  return undefined;
}

function indexOf(rules: readonly MeshDestinationRule[]): RuleIndex {
  let index = indexes.get(rules);
  if (index === undefined) {
    index = new Map([...Map.groupBy(rules, (rule) => rule.namespace)].map(([name, own]) => [name, hostIndex(own)]));
    indexes.set(rules, index);
  }
  return index;
}

function hostIndex(rules: readonly MeshDestinationRule[]): HostIndex<EffectiveRule> {
  return new HostIndex([...Map.groupBy(rules, (rule) => rule.host)].map(([host, same]) => [host, merged(same)]));
}

/** Several rules of a namespace for the same host count as one: the first one's policy, the subsets of all. */
function merged(rules: readonly MeshDestinationRule[]): EffectiveRule {
  const { name, namespace } = rules[0]!;
  const names = new Set<string>();
  const subsets = rules
    .flatMap((rule) => rule.subsets)
    .filter((subset) => !names.has(subset.name) && names.add(subset.name));
  const trafficPolicy = rules.find((rule) => rule.trafficPolicy !== undefined)?.trafficPolicy;
  return { name, namespace, ...(trafficPolicy === undefined ? {} : { trafficPolicy }), subsets };
}
