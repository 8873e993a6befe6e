// EndpointSlices and Pods → EndpointSnapshot: which addresses stand behind each port of each Service right now, and
// what the mesh knows of the pod at each of them.
import { isIPv6 } from "node:net";
import { serviceNameLabel } from "@tulle/config";
import type { EndpointSlice, Pod, ServiceEntry } from "@tulle/config";
import {
  type AddressedWorkload,
  choiceOf,
  endpointOf,
  workloadEntries,
  type WorkloadFacts,
  writtenEndpoints,
} from "./addressed-workloads.ts";
import { hasSentEndpoints } from "./service-entries.ts";
import { localitiesOfPods } from "./localities.ts";
import { networksOfEndpoints } from "./networks.ts";
import type { ResourceReader } from "./resource-reader.ts";
import type { EndpointSnapshot, MeshEndpoint, MeshPort, MeshService, MeshSnapshot } from "./mesh-snapshot.ts";
import { servicePortKey } from "./mesh-snapshot.ts";
import { mutualTlsOfWorkloads, type PolicedWorkload, tlsModeLabel } from "./workload-mutual-tls.ts";

type SnapshotPart = Pick<MeshSnapshot, "services" | "trustDomain" | "peerAuthentications">;

export function buildEndpoints(store: ResourceReader, snapshot: SnapshotPart): EndpointSnapshot {
  const pods = new Map(store.list("Pod").map((pod) => [`${pod.metadata.namespace}/${pod.metadata.name}`, pod]));
  const slices = new Map<string, EndpointSlice[]>();
  for (const slice of store.list("EndpointSlice")) {
    const service = slice.metadata.labels?.[serviceNameLabel];
    if (service === undefined) continue;
    const key = `${slice.metadata.namespace}/${service}`;
    const list = slices.get(key);
    if (list === undefined) slices.set(key, [slice]);
    else list.push(slice);
  }
  const facts: WorkloadFacts = { modeOf: mutualTlsOfWorkloads(snapshot), networkOf: networksOfEndpoints(store) };
  const nodes = new Map(store.list("Node").map(({ metadata: { name, labels } }) => [name, labels]));
  const localityOf = localitiesOfPods((name) => nodes.get(name));
  const policed = new Map(
    [...pods].map(([key, pod]): [string, KnownPod] => {
      const locality = localityOf(pod);
      return [key, { pod, ...policedPod(pod), ...(locality === undefined ? {} : { locality }) }];
    }),
  );
  const addressed = addressedWorkloads(store);
  const chosenPods = choiceOf(policed.values());
  const byServicePort = new Map<string, readonly MeshEndpoint[]>();
  const leaving = new Map<string, readonly MeshEndpoint[]>();
  const notReady = new Map<string, readonly MeshEndpoint[]>();
  const encryptedOnly: string[] = [];
  for (const service of snapshot.services) {
    // What is looked up is a matter of the proxies, and of clients where nothing is.
    if (!hasSentEndpoints(service)) continue;
    const own = service.entry === undefined ? (slices.get(`${service.namespace}/${service.name}`) ?? []) : [];
    const others = addressed(service);
    const chosen = service.entry === undefined ? [] : chosenPods(service.namespace, service.selector);
    for (const port of service.ports) {
      const all: readonly FoundEndpoint[] = [
        ...eachPodOnce(
          own.flatMap((slice) => endpointsOfPort(slice, service, port, policed, facts)),
          service,
        ),
        ...chosen.flatMap((pod) => endpointOfPod(pod, port, facts)),
        ...others.map((workload) => ({
          isReady: workload.isUnhealthy !== true,
          endpoint: endpointOf(workload, port, facts),
        })),
      ];
      const key = servicePortKey(service, port.number);
      byServicePort.set(key, sorted(all.filter(({ isReady }) => isReady).map(({ endpoint }) => endpoint)));
      const ending = all.filter(({ isLeaving }) => isLeaving === true).map(({ endpoint }) => endpoint);
      if (ending.length > 0) leaving.set(key, sorted(ending));
      const waiting = all.filter(({ isReady }) => !isReady).map(({ endpoint }) => endpoint);
      if (waiting.length > 0 && service.addresses.length === 0) notReady.set(key, sorted(waiting));
      if (all.length > 0 && all.every(({ endpoint }) => endpoint.refusesPlainText === true)) encryptedOnly.push(key);
    }
  }
  return { byServicePort, leaving, notReady, encryptedOnly };
}

function endpointsOfPort(
  slice: EndpointSlice,
  service: MeshService,
  port: MeshPort,
  pods: ReadonlyMap<string, KnownPod>,
  { modeOf, networkOf }: WorkloadFacts,
): FoundEndpoint[] {
  const number = slice.ports.find((each) => (each.name ?? "") === port.name)?.port;
  if (number === undefined || slice.addressType === "FQDN") return [];
  return slice.endpoints.map(({ addresses, conditions, hostname, targetRef: target }) => {
    const namespace = target?.namespace ?? service.namespace;
    const pod = target?.name === undefined ? undefined : `${namespace}/${target.name}`;
    const known = pod === undefined ? undefined : pods.get(pod);
    const mode = known === undefined ? "DISABLE" : modeOf(known, number);
    const network = networkOf(known?.labels ?? {}, addresses[0]!);
    const endpoint: MeshEndpoint = {
      address: addresses[0]!,
      port: number,
      ...(hostname === undefined ? {} : { hostname }),
      labels: known?.labels ?? {},
      workload: known === undefined ? (target?.name ?? "") : workloadName(known.pod),
      namespace,
      ...(known?.locality === undefined ? {} : { locality: known.locality }),
      ...(network === undefined ? {} : { network }),
      ...(mode === "DISABLE" ? {} : { tlsMode: "istio" }),
      ...(mode === "STRICT" ? { refusesPlainText: true } : {}),
    };
    const { ready = true, serving = ready, terminating = false } = conditions ?? {};
    return {
      isReady: ready,
      isLeaving: !ready && serving && terminating,
      endpoint,
      ...(pod === undefined ? {} : { pod }),
    };
  });
}

interface FoundEndpoint {
  readonly isReady: boolean;
  /** It ends, and answers until then. */
  readonly isLeaving?: boolean;
  readonly endpoint: MeshEndpoint;
  /** `namespace/name` */
  readonly pod?: string;
}

/**
 * A pod stands in a slice of each family of its Service, and is one endpoint all the same: at its address of the
 * Service's first family (Istio: one endpoint with several addresses).
 */
function eachPodOnce(found: readonly FoundEndpoint[], { addresses }: MeshService): readonly FoundEndpoint[] {
  const isFirst = isIPv6(addresses[0] ?? "") ? isIPv6 : (address: string) => !isIPv6(address);
  const byPod = new Map<string, FoundEndpoint>();
  const others: FoundEndpoint[] = [];
  for (const each of found) {
    const { pod, endpoint } = each;
    const known = pod === undefined ? undefined : byPod.get(pod);
    if (pod === undefined) others.push(each);
    else if (known === undefined) byPod.set(pod, each);
    else if (isIPv6(known.endpoint.address) === isIPv6(endpoint.address)) others.push(each);
    else {
      const [one, other] = isFirst(known.endpoint.address) ? [known, each] : [each, known];
      byPod.set(pod, { ...one, endpoint: { ...one.endpoint, otherAddresses: [other.endpoint.address] } });
    }
  }
  return [...byPod.values(), ...others];
}

/** Of a pod that a ServiceEntry chooses, for which nobody writes an EndpointSlice; none before it has an address. */
function endpointOfPod(
  known: KnownPod,
  { targetPort, number }: MeshPort,
  { modeOf, networkOf }: WorkloadFacts,
): { readonly isReady: boolean; readonly endpoint: MeshEndpoint }[] {
  const { pod, namespace, labels } = known;
  const { podIP: address, conditions = [] } = pod.status ?? {};
  if (address === undefined || address === "") return [];
  const port = typeof targetPort === "number" ? targetPort : number;
  const mode = modeOf(known, port);
  const network = networkOf(labels, address);
  const endpoint: MeshEndpoint = {
    address,
    port,
    labels,
    workload: workloadName(pod),
    namespace,
    ...(known.locality === undefined ? {} : { locality: known.locality }),
    ...(network === undefined ? {} : { network }),
    ...(mode === "DISABLE" ? {} : { tlsMode: "istio" }),
    ...(mode === "STRICT" ? { refusesPlainText: true } : {}),
  };
  return [{ isReady: conditions.some(({ type, status }) => type === "Ready" && status === "True"), endpoint }];
}

type KnownPod = PolicedWorkload & { readonly pod: Pod; readonly locality?: string };

function policedPod({ metadata: { namespace, labels = {} } }: Pod): PolicedWorkload {
  return { namespace, labels, hasProxy: labels[tlsModeLabel] === "istio" };
}

/** The workloads behind a service that are no pods. */
function addressedWorkloads(store: ResourceReader): (service: MeshService) => readonly AddressedWorkload[] {
  const chosen = choiceOf(workloadEntries(store));
  const entries = new Map<string, ServiceEntry>(
    store.list("ServiceEntry").map((entry) => [`${entry.metadata.namespace}/${entry.metadata.name}`, entry]),
  );
  return ({ namespace, selector, entry }) => {
    const written = entry === undefined ? undefined : entries.get(`${namespace}/${entry.resource}`);
    return [...(written === undefined ? [] : writtenEndpoints(written)), ...chosen(namespace, selector)];
  };
}

/**
 * Who made the pod: the Deployment behind its ReplicaSet (whose name ends in the hash that is the pod's label too),
 * another owner, else the pod itself (Istio: GetWorkloadMetaFromPod).
 */
export function workloadName({ metadata }: Pick<Pod, "metadata">): string {
  const owner = metadata.ownerReferences?.[0];
  const hash = metadata.labels?.["pod-template-hash"];
  if (owner === undefined) {
    const end = hash === undefined ? -1 : metadata.name.lastIndexOf(`-${hash}-`);
    return end > 0 ? metadata.name.slice(0, end) : metadata.name;
  }
  if (owner.kind === "ReplicaSet" && hash !== undefined && owner.name.endsWith(`-${hash}`)) {
    return owner.name.slice(0, -hash.length - 1);
  }
  return owner.name;
}

function sorted(endpoints: MeshEndpoint[]): readonly MeshEndpoint[] {
  const seen = new Map(endpoints.map((endpoint) => [`${endpoint.address} ${endpoint.port}`, endpoint]));
  return [...seen.entries()].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, endpoint]) => endpoint);
}
