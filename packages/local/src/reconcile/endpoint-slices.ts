// The addresses behind each Service: what Kubernetes' endpoint slice controller does, from Services and pods to
// EndpointSlices.
import { createHash } from "node:crypto";
import { isIPv6 } from "node:net";
import { isBehind, serviceNameLabel, type EndpointSlice, type Service } from "@tulle/config";
import type { ContainerPort } from "../pod/pod-plan.ts";

export interface EndpointPod {
  readonly name: string;
  readonly namespace: string;
  readonly labels: Readonly<Record<string, string>>;
  /** One of each family that it has, IPv4 first. */
  readonly addresses: readonly string[];
  readonly nodeName?: string;
  readonly ports: readonly ContainerPort[];
  readonly ready: boolean;
  readonly leaving: boolean;
}

export const managedByLabel = "endpointslice.kubernetes.io/managed-by";
export const managedBy = "tulle-local";

/**
 * One slice for each Service, each of its families, and each way in which its target ports resolve: pods may give a
 * named port different numbers.
 */
export function buildEndpointSlices(services: readonly Service[], pods: readonly EndpointPod[]): EndpointSlice[] {
  return services.flatMap((service) => slicesOf(service, pods));
}

function slicesOf(service: Service, pods: readonly EndpointPod[]): EndpointSlice[] {
  if (service.spec.type === "ExternalName") return [];
  const { name, namespace } = service.metadata;
  const groups = new Map<string, SliceGroup>();
  for (const pod of pods) {
    if (!isBehind(service, pod)) continue;
    const ports = resolvePorts(service, pod);
    for (const { address, addressType } of addressesFor(service, pod)) {
      const key = `${JSON.stringify(ports)}${addressType === "IPv4" ? "" : addressType}`;
      const group = groups.get(key);
      if (group === undefined) groups.set(key, { ports, addressType, members: [{ pod, address }] });
      else group.members.push({ pod, address });
    }
  }
  return [...groups].map(([key, group]) => ({
    apiVersion: "discovery.k8s.io/v1",
    kind: "EndpointSlice",
    metadata: {
      name: `${name}-${createHash("sha256").update(key).digest("hex").slice(0, 5)}`,
      namespace,
      labels: { [serviceNameLabel]: name, [managedByLabel]: managedBy },
    },
    addressType: group.addressType,
    ports: group.ports,
    endpoints: group.members
      .sort((a, b) => (a.pod.name < b.pod.name ? -1 : 1))
      .map(({ pod, address }) => ({
        addresses: [address],
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

interface SliceGroup {
  readonly ports: EndpointSlice["ports"];
  readonly addressType: AddressType;
  readonly members: { readonly pod: EndpointPod; readonly address: string }[];
}

type AddressType = "IPv4" | "IPv6";

/** Of the Service's families, IPv4 where it names none; where the pod has but one family, that one. */
function addressesFor(
  { spec: { ipFamilies = ["IPv4"] } }: Service,
  { addresses }: EndpointPod,
): readonly { readonly address: string; readonly addressType: AddressType }[] {
  const all = addresses.map((address) => ({
    address,
    addressType: isIPv6(address) ? ("IPv6" as const) : ("IPv4" as const),
  }));
  return all.length === 1 ? all : all.filter(({ addressType }) => ipFamilies.includes(addressType));
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
