// EndpointSlices and Pods → EndpointSnapshot: which addresses stand behind each port of each Service right now, and
// what the mesh knows of the pod at each of them.
import { modeOfPort, type MutualTlsMode, mutualTlsModes, type MutualTlsModes, serviceNameLabel } from "@tulle/config";
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
  const modeOf = mutualTlsOfPods(snapshot);
  const byServicePort = new Map<string, readonly MeshEndpoint[]>();
  const encryptedOnly: string[] = [];
  for (const service of snapshot.services) {
    const own = slices.get(`${service.namespace}/${service.name}`) ?? [];
    for (const port of service.ports) {
      const all = own.flatMap((slice) => endpointsOfPort(slice, service, port, pods, modeOf));
      const key = servicePortKey(service.hostname, port.number);
      byServicePort.set(key, sorted(all.filter(({ isReady }) => isReady).map(({ endpoint }) => endpoint)));
      if (all.length > 0 && all.every(({ endpoint }) => endpoint.refusesPlainText === true)) encryptedOnly.push(key);
    }
  }
  return { byServicePort, encryptedOnly };
}

function endpointsOfPort(
  slice: EndpointSlice,
  service: MeshService,
  port: MeshPort,
  pods: ReadonlyMap<string, Pod>,
  modeOf: ModeOfPod,
): { readonly isReady: boolean; readonly endpoint: MeshEndpoint }[] {
  const number = slice.ports.find((each) => (each.name ?? "") === port.name)?.port;
  if (number === undefined || slice.addressType === "FQDN") return [];
  return slice.endpoints.map(({ addresses, conditions, hostname, targetRef: target }) => {
    const namespace = target?.namespace ?? service.namespace;
    const pod = target?.name === undefined ? undefined : pods.get(`${namespace}/${target.name}`);
    const mode = pod === undefined ? "DISABLE" : modeOf(pod, number);
    const endpoint: MeshEndpoint = {
      address: addresses[0]!,
      port: number,
      ...(hostname === undefined ? {} : { hostname }),
      labels: pod?.metadata.labels ?? {},
      workload: pod === undefined ? (target?.name ?? "") : workloadName(pod),
      namespace,
      ...(mode === "DISABLE" ? {} : { tlsMode: "istio" }),
      ...(mode === "STRICT" ? { refusesPlainText: true } : {}),
    };
    return { isReady: conditions?.ready !== false, endpoint };
  });
}

/** DISABLE for a pod without a proxy, whatever a policy says. */
type ModeOfPod = (pod: Pod, port: number) => MutualTlsMode;

function mutualTlsOfPods({ trustDomain, peerAuthentications = [] }: SnapshotPart): ModeOfPod {
  const modesOfPods = new Map<Pod, MutualTlsModes>();
  return (pod, port) => {
    const { namespace, labels = {} } = pod.metadata;
    if (trustDomain === undefined || labels[tlsModeLabel] !== "istio") return "DISABLE";
    let modes = modesOfPods.get(pod);
    if (modes === undefined) modesOfPods.set(pod, (modes = mutualTlsModes(peerAuthentications, { namespace, labels })));
    return modeOfPort(modes, port);
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
