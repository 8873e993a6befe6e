// EndpointSlices and Pods → the identities behind each Service: the SPIFFE ids that its callers accept. Pods count
// before they are ready and after they have begun to leave, so that clusters stay as they are while instances of a
// workload come and go.
import { serviceNameLabel } from "@tulle/config";
import type { ResourceReader } from "./resource-reader.ts";

/** By `namespace/name` of the Service; sorted, so that equal sets are equal. */
export type ServiceIdentities = ReadonlyMap<string, readonly string[]>;

export function serviceIdentities(store: ResourceReader, trustDomain: string): ServiceIdentities {
  const accounts = new Map(
    store.list("Pod").map(({ metadata, spec }) => [`${metadata.namespace}/${metadata.name}`, serviceAccount(spec)]),
  );
  const byService = new Map<string, Set<string>>();
  for (const { metadata, endpoints } of store.list("EndpointSlice")) {
    const service = metadata.labels?.[serviceNameLabel];
    if (service === undefined) continue;
    const key = `${metadata.namespace}/${service}`;
    for (const { targetRef } of endpoints) {
      const namespace = targetRef?.namespace ?? metadata.namespace;
      const account = accounts.get(`${namespace}/${targetRef?.name}`);
      if (account === undefined) continue;
      const ids = byService.get(key) ?? new Set();
      byService.set(key, ids.add(`spiffe://${trustDomain}/ns/${namespace}/sa/${account}`));
    }
  }
  return new Map([...byService].map(([key, ids]) => [key, [...ids].sort()]));
}

/** Kubernetes' names for it, and the account that every pod without one has. */
export function serviceAccount(spec: {
  readonly serviceAccountName?: string;
  readonly serviceAccount?: string;
}): string {
  return spec.serviceAccountName ?? spec.serviceAccount ?? "default";
}

export function sameIdentities(one: ServiceIdentities, other: ServiceIdentities): boolean {
  if (one.size !== other.size) return false;
  return [...one].every(([key, ids]) => {
    const others = other.get(key);
    return others !== undefined && ids.length === others.length && ids.every((id, index) => id === others[index]);
  });
}
