/**
 * Which workloads a Telemetry is for besides its selector: those of a Gateway of the Gateway API, which its label names
 * (Istio: PolicyMatcher). Services are targets for waypoints alone, which this mesh has none of.
 */
interface Reference {
  readonly group?: string;
  readonly kind: string;
  readonly name: string;
}

interface Targeted {
  readonly spec: { readonly targetRef?: Reference; readonly targetRefs?: readonly Reference[] };
}

/** Label by which a workload is one of a Gateway's. */
export const gatewayNameLabel = "gateway.networking.k8s.io/gateway-name";

export function targetReferences({ spec }: Targeted): readonly Reference[] {
  return spec.targetRef === undefined ? (spec.targetRefs ?? []) : [spec.targetRef];
}

/** Names of the Gateways that it is for alone; undefined where it has no targets. */
export function targetGateways(resource: Targeted): readonly string[] | undefined {
  const references = targetReferences(resource);
  if (references.length === 0) return undefined;
  return references
    .filter(({ group, kind }) => kind === "Gateway" && group === "gateway.networking.k8s.io")
    .map(({ name }) => name);
}
