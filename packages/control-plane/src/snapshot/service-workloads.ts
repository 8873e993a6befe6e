// EndpointSlices and Pods → who is behind each Service: the SPIFFE ids that its callers accept, and whether all have a
// sidecar. Pods count before they are ready and after they have begun to leave, so that clusters stay as they are while
// instances of a workload come and go.
import { type Pod, serviceNameLabel } from "@tulle/config";
import { tlsModeLabel } from "./build-endpoints.ts";
import type { ResourceReader } from "./resource-reader.ts";

export interface Workloads {
  /** SPIFFE ids; sorted, so that equal sets are equal. */
  readonly identities: readonly string[];
  /** Each of them has a sidecar. */
  readonly haveSidecars: boolean;
}

/** By `namespace/name` of the Service; one without workloads is missing. */
export type ServiceWorkloads = ReadonlyMap<string, Workloads>;

export function serviceWorkloads(store: ResourceReader, trustDomain: string): ServiceWorkloads {
  const pods = new Map(store.list("Pod").map((pod) => [`${pod.metadata.namespace}/${pod.metadata.name}`, pod]));
  const byService = new Map<string, { readonly identities: Set<string>; haveSidecars: boolean }>();
  for (const { metadata, endpoints } of store.list("EndpointSlice")) {
    const service = metadata.labels?.[serviceNameLabel];
    if (service === undefined || endpoints.length === 0) continue;
    const key = `${metadata.namespace}/${service}`;
    const workloads = byService.get(key) ?? { identities: new Set(), haveSidecars: true };
    byService.set(key, workloads);
    for (const { targetRef } of endpoints) {
      const namespace = targetRef?.namespace ?? metadata.namespace;
      const pod = pods.get(`${namespace}/${targetRef?.name}`);
      if (pod === undefined || !hasSidecar(pod)) workloads.haveSidecars = false;
      if (pod === undefined) continue;
      workloads.identities.add(`spiffe://${trustDomain}/ns/${namespace}/sa/${serviceAccount(pod.spec)}`);
    }
  }
  return new Map(
    [...byService].map(([key, { identities, haveSidecars }]) => [
      key,
      { identities: [...identities].sort(), haveSidecars },
    ]),
  );
}

function hasSidecar({ metadata }: Pod): boolean {
  return metadata.labels?.[tlsModeLabel] === "istio";
}

/** Kubernetes' names for it, and the account that every pod without one has. */
export function serviceAccount(spec: {
  readonly serviceAccountName?: string;
  readonly serviceAccount?: string;
}): string {
  return spec.serviceAccountName ?? spec.serviceAccount ?? "default";
}

export function sameWorkloads(one: ServiceWorkloads, other: ServiceWorkloads): boolean {
  if (one.size !== other.size) return false;
  return [...one].every(([key, { identities, haveSidecars }]) => {
    const others = other.get(key);
    return (
      others !== undefined &&
      haveSidecars === others.haveSidecars &&
      identities.length === others.identities.length &&
      identities.every((id, index) => id === others.identities[index])
    );
  });
}
