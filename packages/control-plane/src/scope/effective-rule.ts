// Which DestinationRules hold for a Service when a proxy of some namespace calls it.
import { rootNamespaces } from "@tulle/config";
import { HostIndex } from "../snapshot/host-match.ts";
import type { MeshDestinationRule, MeshService } from "../snapshot/mesh-snapshot.ts";
import type { EffectiveRule } from "./proxy-view.ts";

/** Rules of each namespace, by host and merged. */
type ByNamespace = ReadonlyMap<string, HostIndex<EffectiveRule>>;

interface RuleIndex {
  readonly byNamespace: ByNamespace;
  /** Those that no other namespace sees. */
  readonly privateByNamespace: ByNamespace;
}

const indexes = new WeakMap<readonly MeshDestinationRule[], RuleIndex>();

/**
 * Of the rules that the client sees, those of its namespace come first, then those of the Service's, then those of a
 * root namespace; within one, the narrowest host wins (Istio: PushContext.destinationRule).
 */
export function effectiveRule(
  rules: readonly MeshDestinationRule[],
  service: MeshService,
  clientNamespace: string,
): EffectiveRule | undefined {
  const { byNamespace, privateByNamespace } = indexOf(rules);
  // What a root namespace says to everybody is the last resort for its own proxies, too: gateways often live there.
  const own = (rootNamespaces.includes(clientNamespace) ? privateByNamespace : byNamespace).get(clientNamespace);
  const others = [service.namespace, ...rootNamespaces].map((namespace) => byNamespace.get(namespace));
  for (const index of [own, ...others]) {
    const found = index?.find(service.hostname);
    if (found !== undefined) return found;
  }
  return undefined;
}

function indexOf(rules: readonly MeshDestinationRule[]): RuleIndex {
  let index = indexes.get(rules);
  if (index === undefined) {
    const isPrivate = ({ namespace, exportedTo, workloadSelector }: MeshDestinationRule): boolean =>
      workloadSelector !== undefined || exportedTo?.every((name) => name === namespace) === true;
    index = { byNamespace: byNamespaceOf(rules), privateByNamespace: byNamespaceOf(rules.filter(isPrivate)) };
    indexes.set(rules, index);
  }
  return index;
}

function byNamespaceOf(rules: readonly MeshDestinationRule[]): ByNamespace {
  return new Map([...Map.groupBy(rules, (rule) => rule.namespace)].map(([name, own]) => [name, hostIndex(own)]));
}

function hostIndex(rules: readonly MeshDestinationRule[]): HostIndex<EffectiveRule> {
  return new HostIndex([...Map.groupBy(rules, (rule) => rule.host)].map(([host, same]) => [host, merged(same)]));
}

/**
 * Several rules of a namespace for the same host count as one: the first one's policy, the subsets of all. One that
 * selects the client stands alone before those for everybody (Istio: SidecarScope.DestinationRule).
 */
function merged(all: readonly MeshDestinationRule[]): EffectiveRule {
  const selector = JSON.stringify(all.find(({ workloadSelector }) => workloadSelector !== undefined)?.workloadSelector);
  const rules = all.filter(({ workloadSelector }) => JSON.stringify(workloadSelector) === selector);
  const { name, namespace } = rules[0]!;
  const names = new Set<string>();
  const subsets = rules
    .flatMap((rule) => rule.subsets)
    .filter((subset) => !names.has(subset.name) && names.add(subset.name));
  const trafficPolicy = rules.find((rule) => rule.trafficPolicy !== undefined)?.trafficPolicy;
  return { name, namespace, ...(trafficPolicy === undefined ? {} : { trafficPolicy }), subsets };
}
