// EndpointSlices and Pods → EndpointSnapshot: which addresses stand behind each port of each Service right now, and what the
// mesh knows of the pod at each of them.
import { modeOfPort, mutualTlsModes, type MutualTlsModes, serviceNameLabel } from "@tulle/config";
import type { EndpointSlice, Pod } from "@tulle/config";
import type { ResourceReader } from "./resource-reader.ts";
import type { EndpointSnapshot, MeshEndpoint, MeshPort, MeshService, MeshSnapshot } from "./mesh-snapshot.ts";
import { servicePortKey } from "./mesh-snapshot.ts";

/** Says that a pod's proxy takes mutual TLS (Istio: label.SecurityTlsMode); whoever gives a pod its sidecar sets it. */
export const tlsModeLabel = "security.istio.io/tlsMode";

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
  const takesMutualTls = mutualTlsOfPods(snapshot);
  const byServicePort = new Map<string, readonly MeshEndpoint[]>();
  for (const service of snapshot.services) {
    const own = slices.get(`${service.namespace}/${service.name}`) ?? [];
    for (const port of service.ports) {
      const endpoints = own.flatMap((slice) => endpointsOfPort(slice, service, port, pods, takesMutualTls));
      byServicePort.set(servicePortKey(service.hostname, port.number), sorted(endpoints));
    }
  }
  return { byServicePort };
}

function endpointsOfPort(
  slice: EndpointSlice,
  service: MeshService,
  port: MeshPort,
  pods: ReadonlyMap<string, Pod>,
  takesMutualTls: TakesMutualTls,
): MeshEndpoint[] {
  const number = slice.ports.find((each) => (each.name ?? "") === port.name)?.port;
  if (number === undefined || slice.addressType === "FQDN") return [];
  return slice.endpoints
    .filter((endpoint) => endpoint.conditions?.ready !== false)
    .map((endpoint) => {
      const target = endpoint.targetRef;
      const namespace = target?.namespace ?? service.namespace;
      const pod = target?.name === undefined ? undefined : pods.get(`${namespace}/${target.name}`);
      return {
        address: endpoint.addresses[0]!,
        port: number,
        labels: pod?.metadata.labels ?? {},
        workload: pod === undefined ? (target?.name ?? "") : workloadName(pod),
        namespace,
        ...(pod !== undefined && takesMutualTls(pod, number) ? { tlsMode: "istio" as const } : {}),
      };
    });
}

type TakesMutualTls = (pod: Pod, port: number) => boolean;

function mutualTlsOfPods({ trustDomain, peerAuthentications = [] }: SnapshotPart): TakesMutualTls {
  const modesOfPods = new Map<Pod, MutualTlsModes>();
  return (pod, port) => {
    const { namespace, labels = {} } = pod.metadata;
    if (trustDomain === undefined || labels[tlsModeLabel] !== "istio") return false;
    let modes = modesOfPods.get(pod);
    if (modes === undefined) modesOfPods.set(pod, (modes = mutualTlsModes(peerAuthentications, { namespace, labels })));
    return modeOfPort(modes, port) !== "DISABLE";
  };
}

/**
 * Who made the pod: the Deployment behind its ReplicaSet (whose name ends in the hash that is the pod's label too), another
 * owner, else the pod itself (Istio: GetWorkloadMetaFromPod).
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
