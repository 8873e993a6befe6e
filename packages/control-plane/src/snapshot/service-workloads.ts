// EndpointSlices, Pods and WorkloadEntries → who is behind each service: the SPIFFE ids that its callers accept, and
// whether all have a sidecar. Pods count before they are ready and after they have begun to leave, so that clusters
// stay as they are while instances of a workload come and go.
import { type Pod, serviceNameLabel } from "@tulle/config";
import {
  accountIdentity,
  type AddressedWorkload,
  choiceOf,
  identityOf,
  workloadEntries,
  writtenEndpoints,
} from "./addressed-workloads.ts";
import type { ResourceReader } from "./resource-reader.ts";
import { tlsModeLabel } from "./workload-mutual-tls.ts";

export interface Workloads {
  /** SPIFFE ids; sorted, so that equal sets are equal. */
  readonly identities: readonly string[];
  /** Each of them has a sidecar. */
  readonly haveSidecars: boolean;
}

/** By `namespace/name` of the Service, or by `entryKey`; one without workloads is missing. */
export type ServiceWorkloads = ReadonlyMap<string, Workloads>;

export function serviceWorkloads(store: ResourceReader, trustDomain: string): ServiceWorkloads {
  const pods = new Map(store.list("Pod").map((pod) => [`${pod.metadata.namespace}/${pod.metadata.name}`, pod]));
  const byService = new Map<string, Gathered>();
  for (const { metadata, endpoints } of store.list("EndpointSlice")) {
    const service = metadata.labels?.[serviceNameLabel];
    if (service === undefined || endpoints.length === 0) continue;
    const workloads = gathered(byService, `${metadata.namespace}/${service}`);
    for (const { targetRef, conditions } of endpoints) {
      const namespace = targetRef?.namespace ?? metadata.namespace;
      const pod = pods.get(`${namespace}/${targetRef?.name}`);
      // Its pod has gone, and whoever writes the slice has not heard of it: nothing is sent there.
      if (pod === undefined && (conditions?.ready === false || conditions?.terminating === true)) continue;
      if (pod === undefined || !hasSidecar(pod)) workloads.haveSidecars = false;
      if (pod === undefined) continue;
      workloads.identities.add(podIdentity(pod, trustDomain));
    }
  }
  addAddressed(store, trustDomain, byService);
  addChosenPods(store, trustDomain, byService);
  return new Map(
    [...byService].map(([key, { identities, haveSidecars }]) => [
      key,
      { identities: [...identities].sort(), haveSidecars },
    ]),
  );
}

interface Gathered {
  readonly identities: Set<string>;
  haveSidecars: boolean;
}

function gathered(byService: Map<string, Gathered>, key: string): Gathered {
  let workloads = byService.get(key);
  if (workloads === undefined) byService.set(key, (workloads = { identities: new Set(), haveSidecars: true }));
  return workloads;
}

/** The key of what is behind a ServiceEntry. */
export function entryKey(namespace: string, name: string): string {
  return `ServiceEntry ${namespace}/${name}`;
}

/** Workloads that are no pods. A ServiceEntry also names its servers itself. */
function addAddressed(store: ResourceReader, trustDomain: string, byService: Map<string, Gathered>): void {
  const chosen = choiceOf(workloadEntries(store));
  const add = (key: string, found: readonly AddressedWorkload[], names: readonly string[] = []): void => {
    if (found.length === 0 && names.length === 0) return;
    const workloads = gathered(byService, key);
    for (const name of names) workloads.identities.add(name);
    for (const workload of found) {
      if (!workload.hasProxy) workloads.haveSidecars = false;
      const identity = identityOf(workload, trustDomain);
      if (identity !== undefined) workloads.identities.add(identity);
    }
  };
  for (const { metadata, spec } of store.list("Service"))
    add(`${metadata.namespace}/${metadata.name}`, chosen(metadata.namespace, spec.selector ?? {}));
  for (const entry of store.list("ServiceEntry")) {
    const { metadata, spec } = entry;
    const found = [...writtenEndpoints(entry), ...chosen(metadata.namespace, spec.workloadSelector?.labels ?? {})];
    add(entryKey(metadata.namespace, metadata.name), found, spec.subjectAltNames);
  }
}

/** Pods of the selectors of ServiceEntries. */
function addChosenPods(store: ResourceReader, trustDomain: string, byService: Map<string, Gathered>): void {
  const pods = store.list("Pod").map((pod) => {
    const { namespace, labels = {} } = pod.metadata;
    return { pod, namespace, labels };
  });
  const chosen = choiceOf(pods);
  for (const { metadata, spec } of store.list("ServiceEntry")) {
    for (const { pod } of chosen(metadata.namespace, spec.workloadSelector?.labels ?? {})) {
      const workloads = gathered(byService, entryKey(metadata.namespace, metadata.name));
      workloads.identities.add(podIdentity(pod, trustDomain));
      if (!hasSidecar(pod)) workloads.haveSidecars = false;
    }
  }
}

function podIdentity({ metadata: { namespace }, spec }: Pod, trustDomain: string): string {
  return accountIdentity(trustDomain, namespace, serviceAccount(spec));
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
