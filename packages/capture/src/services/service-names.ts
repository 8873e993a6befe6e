// The names of Services and of the pods behind headless ones, as Kubernetes' name server has them (its specification
// "DNS-Based Service Discovery").
import type { NameEntry, NamedPort } from "../dns/name-table.ts";
import {
  clusterAddresses,
  isHeadless,
  serviceKey,
  serviceNameLabel,
  type ClusterEndpoint,
  type ClusterEndpointSlice,
  type ClusterService,
} from "./cluster-objects.ts";

export interface ServiceNamesInput {
  /** With their addresses. */
  readonly services: readonly ClusterService[];
  readonly endpointSlices: readonly ClusterEndpointSlice[];
  /** `svc.cluster.local` */
  readonly serviceDomain: string;
}

export function serviceNames({ services, endpointSlices, serviceDomain }: ServiceNamesInput): readonly NameEntry[] {
  const slices = Map.groupBy(
    endpointSlices,
    ({ metadata: { namespace, labels } }) => `${namespace}/${labels?.[serviceNameLabel]}`,
  );
  return services.flatMap((service) => {
    const hostname = `${service.metadata.name}.${service.metadata.namespace}.${serviceDomain}`;
    if (isHeadless(service)) return headlessNames(service, hostname, slices.get(serviceKey(service)) ?? []);
    const addresses = clusterAddresses(service);
    if (service.spec.type === "ExternalName" || addresses.length === 0) return [];
    return [{ hostname, addresses, isKubernetes: true, ports: service.spec.ports.flatMap((port) => namedPort(port)) }];
  });
}

/** The Service's name stands for all its pods that are ready, and each has a name below it. */
function headlessNames(
  service: ClusterService,
  hostname: string,
  slices: readonly ClusterEndpointSlice[],
): readonly NameEntry[] {
  const pods = new Map<string, string[]>();
  for (const { endpoints, addressType } of slices) {
    if (addressType === "FQDN") continue;
    for (const endpoint of endpoints) {
      const [address] = endpoint.addresses;
      if (address === undefined || endpoint.conditions?.ready === false) continue;
      const name = `${podName(endpoint, address)}.${hostname}`;
      const known = pods.get(name) ?? [];
      pods.set(name, known.includes(address) ? known : [...known, address]);
    }
  }
  if (pods.size === 0) return [];
  const ports = service.spec.ports.flatMap((port) => {
    const numbers = slices.flatMap((slice) => slice.ports.filter(({ name = "" }) => name === (port.name ?? "")));
    return namedPort(port, numbers[0]?.port);
  });
  const targets = [...pods.keys()];
  return [
    { hostname, addresses: [...new Set([...pods.values()].flat())], isKubernetes: true, ports, targets },
    ...[...pods].map(([name, addresses]) => ({ hostname: name, addresses, isKubernetes: true })),
  ];
}

function podName({ hostname }: ClusterEndpoint, address: string): string {
  return hostname ?? address.replaceAll(/[.:]/g, "-");
}

/** SRV records are made for ports with a name alone. */
function namedPort(
  { name, port, protocol = "TCP" }: ClusterService["spec"]["ports"][number],
  number = port,
): readonly NamedPort[] {
  const transport = protocol.toLowerCase();
  return name === undefined || (transport !== "tcp" && transport !== "udp")
    ? []
    : [{ name, protocol: transport, port: number }];
}
