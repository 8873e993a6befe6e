// The addresses behind each Service: what Kubernetes' endpoint slice controller does, from Services and pods to
// EndpointSlices.
import { createHash } from "node:crypto";
import { isBehind, serviceNameLabel, type EndpointSlice, type Service } from "@tulle/config";
import type { ContainerPort } from "../pod/pod-plan.ts";

export interface EndpointPod {
  readonly name: string;
  readonly namespace: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly address: string;
  readonly nodeName?: string;
  readonly ports: readonly ContainerPort[];
  readonly ready: boolean;
  readonly leaving: boolean;
}

export const managedByLabel = "endpointslice.kubernetes.io/managed-by";
export const managedBy = "tulle-local";

/**
 * One slice for each Service and each way in which its target ports resolve: pods may give a named port different
 * numbers.
 */
export function buildEndpointSlices(services: readonly Service[], pods: readonly EndpointPod[]): EndpointSlice[] {
  return services.flatMap((service) => slicesOf(service, pods));
}

function slicesOf(service: Service, pods: readonly EndpointPod[]): EndpointSlice[] {
  if (service.spec.type === "ExternalName") return [];
  const { name, namespace } = service.metadata;
  const groups = new Map<string, { ports: EndpointSlice["ports"]; pods: EndpointPod[] }>();
  for (const pod of pods) {
    if (!isBehind(service, pod)) continue;
    const ports = resolvePorts(service, pod);
    const key = JSON.stringify(ports);
    const group = groups.get(key);
    if (group === undefined) groups.set(key, { ports, pods: [pod] });
    else group.pods.push(pod);
  }
  return [...groups].map(([key, group]) => ({
    apiVersion: "discovery.k8s.io/v1",
    kind: "EndpointSlice",
    metadata: {
      name: `${name}-${createHash("sha256").update(key).digest("hex").slice(0, 5)}`,
      namespace,
      labels: { [serviceNameLabel]: name, [managedByLabel]: managedBy },
    },
    addressType: "IPv4",
    ports: group.ports,
    endpoints: group.pods
      .sort((a, b) => (a.name < b.name ? -1 : 1))
      .map((pod) => ({
        addresses: [pod.address],
        conditions: {
          ready: (pod.ready && !pod.leaving) || service.spec.publishNotReadyAddresses === true,
          serving: pod.ready,
          terminating: pod.leaving,
        },
        ...(pod.nodeName === undefined ? {} : { nodeName: pod.nodeName }),
        targetRef: { kind: "Pod", name: pod.name, namespace },
      })),
  }));
}

/** A named target port that a pod does not have is left out for that pod, as Kubernetes does. */
function resolvePorts(service: Service, pod: EndpointPod): EndpointSlice["ports"] {
  return service.spec.ports.flatMap(({ name, port, targetPort = port, protocol, appProtocol }) => {
    const number =
      typeof targetPort === "number" ? targetPort : pod.ports.find((each) => each.name === targetPort)?.port;
    if (number === undefined) return [];
    return [
      {
        port: number,
        protocol,
        ...(name === undefined ? {} : { name }),
        ...(appProtocol === undefined ? {} : { appProtocol }),
      },
    ];
  });
}
