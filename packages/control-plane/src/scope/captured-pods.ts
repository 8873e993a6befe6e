// Pods of Services that have no address of their own (headless): clients choose one of them by its address, and what
// the Service's rules and its mutual TLS say holds there, too (Istio: buildSidecarOutboundListeners).
import { isIP } from "node:net";
import { isHttp, passesConnections } from "@tulle/config";
import { blackHoleCluster, capturedPorts, podClusterName, withPort } from "../names/resource-names.ts";
import {
  type EndpointSnapshot,
  type MeshEndpoint,
  type MeshPort,
  type MeshService,
  servicePortKey,
} from "../snapshot/mesh-snapshot.ts";
import type { ConnectionDestination } from "./gateway-view.ts";
import type { CapturedConnections, CapturedPods, SidecarClusters } from "./proxy-view.ts";
import type { Proxy } from "./proxy.ts";
import { reachWithoutCertificate } from "./uncertified.ts";

/**
 * Listeners of one sidecar for addresses of pods. A Service's port that would go beyond has none: its connections go to
 * its pods as to unknown destinations.
 */
export const maxPodListeners = 1000;

/** Whether connections to a port find it by the addresses of its pods alone. */
export function isDialledByPod({ addresses, entry }: MeshService, { protocol }: MeshPort): boolean {
  return entry === undefined && addresses.length === 0 && passesConnections(protocol);
}

/**
 * Ports that requests to a pod by its own name go to: the pod's, which clients dial, and the Service's, whose table has
 * what is found to be a request where the protocol is not named. None where not all of its pods take mutual TLS.
 */
export function requestPortsOfPods({ podsTakeMutualTls }: MeshService, port: MeshPort): readonly number[] {
  if (podsTakeMutualTls !== true || !isHttp(port.protocol)) return [];
  const dialled = Number(port.targetPort);
  return [...new Set(Number.isInteger(dialled) ? [port.number, dialled] : [port.number])].filter(isFree);
}

/**
 * One for each address; where several Services have a pod at the same port, the first one has it. The workload itself
 * is none of them: what it sends to its own address is no matter of the mesh.
 */
export function podConnections(
  all: readonly CapturedPods[],
  clusters: SidecarClusters,
  proxy: Proxy,
  { byServicePort, notReady }: EndpointSnapshot,
): readonly CapturedConnections[] {
  const own = new Set([proxy.address, ...(proxy.instanceIps ?? [])]);
  const ofCluster = clusters.services.filter(({ entry }) => entry === undefined);
  const services = new Map(ofCluster.map((service) => [service.hostname, service]));
  const found = new Map<string, CapturedConnections>();
  for (const pods of all) {
    const service = services.get(pods.hostname)!;
    const port = service.ports.find((each) => each.number === pods.port && isDialledByPod(service, each))!;
    const isRefused = (endpoint: MeshEndpoint): boolean =>
      proxy.withoutCertificate === true &&
      endpoint.refusesPlainText === true &&
      reachWithoutCertificate(service, port, undefined) === "plain-text";
    const key = servicePortKey(service, pods.port);
    // A listener that goes ends its connections: it stays while the pod is there, ready or not.
    const added = [...(byServicePort.get(key) ?? []), ...(notReady.get(key) ?? [])]
      .flatMap(atEachAddress)
      .filter((endpoint) => isIP(endpoint.address) !== 0 && !own.has(endpoint.address) && isFree(endpoint.port))
      .filter(({ address, port: number }) => !found.has(withPort(address, number)));
    if (found.size + added.length > maxPodListeners) continue;
    for (const endpoint of added.sort((a, b) => (a.address < b.address ? -1 : 1)))
      found.set(withPort(endpoint.address, endpoint.port), connectionsOf(pods, endpoint, isRefused(endpoint)));
  }
  return [...found.values()];
}

/** Clients dial a pod by either family, whichever requests go by. */
function atEachAddress(endpoint: MeshEndpoint): readonly MeshEndpoint[] {
  const { otherAddresses = [] } = endpoint;
  return [endpoint, ...otherAddresses.map((address) => ({ ...endpoint, address }))];
}

function isFree(port: number): boolean {
  return port !== capturedPorts.outbound && port !== capturedPorts.inbound;
}

function connectionsOf(pods: CapturedPods, endpoint: MeshEndpoint, isRefused: boolean): CapturedConnections {
  const { routeName, byServerName, destinations } = pods;
  const toPod = (targets: readonly ConnectionDestination[]): readonly ConnectionDestination[] =>
    isRefused ? [{ cluster: blackHoleCluster, weight: 1 }] : targets.map((each) => podTarget(each, pods, endpoint));
  return {
    address: endpoint.address,
    port: endpoint.port,
    ...(routeName === undefined ? {} : { routeName }),
    ...(byServerName === undefined
      ? {}
      : { byServerName: byServerName.map((each) => ({ ...each, destinations: toPod(each.destinations) })) }),
    destinations: toPod(destinations),
  };
}

/** What leads to the Service leads to the pod itself; what leads elsewhere goes there. */
function podTarget(
  { cluster, weight }: ConnectionDestination,
  { hostname, port }: CapturedPods,
  { tlsMode }: MeshEndpoint,
): ConnectionDestination {
  const [, number, , host] = cluster.split("|");
  if (host !== hostname || Number(number) !== port) return { cluster, weight };
  return { cluster: podClusterName(cluster, tlsMode === "istio" ? "mutual TLS" : "plain text"), weight };
}
