// What the store is told of this machine: a Pod for each pod, and the EndpointSlices of the Services that they are
// behind.
import type { MeshResource, Service } from "@tulle/config";
import type { LocalPod } from "../pod/local-pod.ts";
import { buildEndpointSlices, managedBy, managedByLabel } from "./endpoint-slices.ts";
import { appAddressAnnotation, buildPod } from "./pod-resource.ts";
import type { RestartWishes } from "./restart-wishes.ts";

export function publishedResources(
  pods: readonly LocalPod[],
  services: readonly Service[],
  wishes: RestartWishes,
): MeshResource[] {
  const endpointPods = pods
    .filter((pod) => pod.phase !== "blocked")
    .map((pod) => ({
      name: pod.name,
      namespace: pod.plan.namespace,
      labels: pod.plan.labels,
      addresses: pod.network.ips,
      nodeName: pod.network.node.name,
      ports: pod.ports,
      ready: pod.ready,
      leaving: pod.leaving,
    }));
  // Endpoints first: a leaving pod is to be forgotten before anything else is told of it.
  return [
    ...buildEndpointSlices(services, endpointPods),
    ...pods.map((pod) => buildPod(pod, wishes.annotationsOf(pod.name))),
  ];
}

/**
 * Whether an object in the store was written by a supervisor; manifests may hold Pods and EndpointSlices of their own.
 */
export function isOurs(resource: MeshResource): boolean {
  return resource.kind === "Pod"
    ? resource.metadata.annotations?.[appAddressAnnotation] !== undefined
    : resource.metadata.labels?.[managedByLabel] === managedBy;
}
