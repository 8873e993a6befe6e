// Workloads that are no pods: WorkloadEntries, and the endpoints that a ServiceEntry writes itself.
import { isIP } from "node:net";
import { selects, type ServiceEntry, type WorkloadEntry } from "@tulle/config";
import type { MeshEndpoint, MeshPort } from "./mesh-snapshot.ts";
import type { NetworkOf } from "./networks.ts";
import type { ResourceReader } from "./resource-reader.ts";
import { type ModeOfWorkload, type PolicedWorkload, tlsModeLabel } from "./workload-mutual-tls.ts";

type Spec = WorkloadEntry["spec"];

export interface AddressedWorkload extends PolicedWorkload {
  /** What metrics call it: its WorkloadEntry, else the ServiceEntry and its place there. */
  readonly name: string;
  readonly address: string;
  readonly spec: Spec;
  /** It leaves its services until it is well again; what stands behind them does not change by it. */
  readonly isUnhealthy?: true;
}

type Labels = Readonly<Record<string, string>>;

/** Those of all namespaces that have an address, or a network by whose gateways they are reached. */
export function workloadEntries(store: ResourceReader): readonly AddressedWorkload[] {
  return store
    .list("WorkloadEntry")
    .flatMap(({ metadata, spec, status }) =>
      addressed(spec, metadata.namespace, metadata.name, { ...spec.labels, ...metadata.labels }).map((workload) =>
        isUnhealthy(metadata, status) ? { ...workload, isUnhealthy: true as const } : workload,
      ),
    )
    .filter(({ address }) => address === "" || isIP(address) > 0);
}

/** Which machine a WorkloadEntry is of; what has it, nobody wrote by hand. */
export const machineAnnotation = "networking.tulle.io/machine";

/**
 * As machines tell that join by a group (Istio: status.Healthy of a WorkloadEntry). Of one that has not been told yet
 * nobody knows that it is well: on a cluster a status is written after the object.
 */
function isUnhealthy({ annotations }: WorkloadEntry["metadata"], status: WorkloadEntry["status"]): boolean {
  const health = (status?.conditions ?? []).find(({ type }) => type === "Healthy");
  return health === undefined ? annotations?.[machineAnnotation] !== undefined : health.status !== "True";
}

export function writtenEndpoints({ metadata, spec }: ServiceEntry): readonly AddressedWorkload[] {
  return (spec.endpoints ?? []).flatMap((endpoint, index) =>
    addressed(endpoint, metadata.namespace, `${metadata.name}-${index}`, endpoint.labels ?? {}),
  );
}

function addressed(spec: Spec, namespace: string, name: string, labels: Labels): readonly AddressedWorkload[] {
  const { address = "", network = "", serviceAccount } = spec;
  if (address === "" && network === "") return [];
  const mode = labels[tlsModeLabel];
  // Istio: getTLSModeFromWorkloadEntry.
  const hasProxy = mode === undefined ? serviceAccount !== undefined : mode === "istio";
  return [{ name, namespace, labels, address, spec, hasProxy }];
}

/** The workloads of a namespace that a selector chooses; one without labels chooses none. */
export type Choice<T> = (namespace: string, selector: Labels) => readonly T[];

export function choiceOf<T extends { readonly namespace: string; readonly labels: Labels }>(
  workloads: Iterable<T>,
): Choice<T> {
  const byNamespace = Map.groupBy(workloads, ({ namespace }) => namespace);
  return (namespace, selector) =>
    Object.keys(selector).length === 0
      ? []
      : (byNamespace.get(namespace) ?? []).filter(({ labels }) => selects(selector, labels));
}

/** Undefined for a workload that nobody's certificate is known of. */
export function identityOf({ namespace, spec }: AddressedWorkload, trustDomain: string): string | undefined {
  const { serviceAccount } = spec;
  return serviceAccount === undefined ? undefined : accountIdentity(trustDomain, namespace, serviceAccount);
}

/** Text to compare certificates with: an account that no certificate can have is behind none. */
export function accountIdentity(trustDomain: string, namespace: string, serviceAccount: string): string {
  return `spiffe://${trustDomain}/ns/${namespace}/sa/${serviceAccount}`;
}

/** What is to be known of workloads from elsewhere. */
export interface WorkloadFacts {
  readonly modeOf: ModeOfWorkload;
  readonly networkOf: NetworkOf;
}

/** The workload as an endpoint of a port, which its own list of ports may have elsewhere. */
export function endpointOf(
  workload: AddressedWorkload,
  port: MeshPort,
  { modeOf, networkOf }: WorkloadFacts,
): MeshEndpoint {
  const { address, labels, name, namespace, spec } = workload;
  const { ports = {}, locality = "", weight = 0 } = spec;
  const { targetPort } = port;
  const number = ports[port.name] ?? (typeof targetPort === "number" ? targetPort : (ports[targetPort] ?? port.number));
  const mode = modeOf(workload, number);
  const network = spec.network || networkOf(labels, address);
  return {
    address,
    port: number,
    labels,
    workload: name,
    namespace,
    ...(locality === "" ? {} : { locality }),
    ...(network === undefined ? {} : { network }),
    ...(weight === 0 ? {} : { weight }),
    ...(mode === "DISABLE" ? {} : { tlsMode: "istio" }),
    ...(mode === "STRICT" ? { refusesPlainText: true } : {}),
  };
}
