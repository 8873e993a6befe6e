// Services and EndpointSlices → the ports that rules are made of, each of one family and protocol. What a script for
// nft may not hold ends here.
import { addressBytes, plainAddressText } from "../ip-address.ts";
import { holds, parseIpRange, type IpRange } from "../rules/ip-range.ts";
import type { ServiceEndpoint } from "./choose-endpoints.ts";
import {
  clusterAddresses,
  inOrderOfAge,
  serviceKey,
  serviceNameLabel,
  type ClusterEndpointSlice,
  type ClusterService,
  type ServiceProblem,
  type TrafficPolicy,
} from "./cluster-objects.ts";

export interface ServicePort {
  /** `shop/catalog/tcp/80`, the same for both families. */
  readonly id: string;
  readonly family: 4 | 6;
  readonly protocol: "tcp" | "udp";
  readonly clusterAddress: string;
  readonly port: number;
  readonly nodePort?: number;
  readonly externalAddresses: readonly string[];
  /** How long a client stays with a pod after its last connection; undefined: each connection goes where it may. */
  readonly affinitySeconds?: number;
  readonly internalPolicy: TrafficPolicy;
  readonly externalPolicy: TrafficPolicy;
  /** Of all nodes, in an order of their own. */
  readonly endpoints: readonly ServiceEndpoint[];
}

export interface ServicePortsInput {
  /** With their addresses. */
  readonly services: readonly ClusterService[];
  readonly endpointSlices: readonly ClusterEndpointSlice[];
  /**
   * What `externalIPs` may name; nothing otherwise: a Service could take any address of the world from all pods
   * (CVE-2020-8554).
   */
  readonly externalRanges?: readonly string[];
}

export interface ServicePorts {
  readonly ports: readonly ServicePort[];
  readonly problems: readonly ServiceProblem[];
}

/** Kubernetes' default, three hours. */
const defaultAffinitySeconds = 10_800;
const maxAffinitySeconds = 86_400;
/** What Kubernetes calls namespaces and Services; each part of a chain's name. */
const namePattern = /^[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?$/;

export function servicePorts({ services, endpointSlices, externalRanges = [] }: ServicePortsInput): ServicePorts {
  const endpoints = endpointsByPort(endpointSlices);
  const allowed = externalRanges.flatMap((text) => parseIpRange(text) ?? []);
  const taken = new Map<string, string>();
  const problems: ServiceProblem[] = [];
  const ports: ServicePort[] = [];
  for (const service of inOrderOfAge(services)) {
    const addresses = clusterAddresses(service);
    if (service.spec.type === "ExternalName" || addresses.length === 0) continue;
    const report = (path: string, message: string): void => {
      problems.push({ service: service.metadata, path, message });
    };
    if (!namePattern.test(service.metadata.name) || !namePattern.test(service.metadata.namespace)) {
      report("metadata.name", "this is no name that Kubernetes allows; the Service is left out");
      continue;
    }
    const externals = externalAddresses(service, allowed, report);
    for (const [index, port] of service.spec.ports.entries()) {
      const protocol = (port.protocol ?? "TCP").toLowerCase();
      if (protocol !== "tcp" && protocol !== "udp") {
        report(`spec.ports[${index}].protocol`, `${port.protocol} is not carried; TCP and UDP are`);
        continue;
      }
      const take = (address: string, number: number, path: string): boolean => {
        const key = `${address} ${protocol} ${number}`;
        const owner = taken.get(key);
        if (owner === undefined) taken.set(key, serviceKey(service));
        else {
          const what = address === "" ? `the node port ${number}` : `${address}, port ${number},`;
          report(path, `${what} is the Service ${owner}'s already`);
        }
        return owner === undefined;
      };
      const hasNodePort =
        isOnNodes(service) && port.nodePort !== undefined && port.nodePort !== 0
          ? take("", port.nodePort, `spec.ports[${index}].nodePort`)
          : false;
      const own = externals.filter(({ text, path }) => take(text, port.port, path));
      for (const address of addresses) {
        const bytes = addressBytes(address);
        if (bytes === undefined) continue;
        const family = bytes.length === 4 ? 4 : 6;
        const text = plainAddressText(bytes);
        if (!take(text, port.port, "spec.clusterIP")) continue;
        ports.push({
          id: `${serviceKey(service)}/${protocol}/${port.port}`,
          family,
          protocol,
          clusterAddress: text,
          port: port.port,
          ...(hasNodePort ? { nodePort: port.nodePort! } : {}),
          externalAddresses: own.filter((each) => each.family === family).map((each) => each.text),
          ...affinity(service),
          internalPolicy: service.spec.internalTrafficPolicy ?? "Cluster",
          externalPolicy: service.spec.externalTrafficPolicy ?? "Cluster",
          endpoints: endpoints.get(endpointKey(service, port.name, protocol, family)) ?? [],
        });
      }
    }
  }
  return { ports, problems };
}

/** Whether it has ports on all nodes: a load balancer outside leads there, too. */
export function isOnNodes({ spec }: ClusterService): boolean {
  return spec.type === "NodePort" || spec.type === "LoadBalancer";
}

function affinity({ spec }: ClusterService): Pick<ServicePort, "affinitySeconds"> {
  if (spec.sessionAffinity !== "ClientIP") return {};
  const seconds = spec.sessionAffinityConfig?.clientIP?.timeoutSeconds ?? defaultAffinitySeconds;
  return { affinitySeconds: Math.min(Math.max(Math.trunc(seconds), 1), maxAffinitySeconds) };
}

interface ExternalAddress {
  readonly text: string;
  readonly family: 4 | 6;
  readonly path: string;
}

function externalAddresses(
  { spec }: ClusterService,
  allowed: readonly IpRange[],
  report: (path: string, message: string) => void,
): readonly ExternalAddress[] {
  return (spec.externalIPs ?? []).flatMap((address, index) => {
    const path = `spec.externalIPs[${index}]`;
    const range = address.includes("/") ? undefined : parseIpRange(address);
    if (range === undefined) {
      report(path, "this is no address");
      return [];
    }
    if (!allowed.some((each) => holds(each, range))) {
      report(path, `${address} is not an address that Services may take: pods that call it would be led astray`);
      return [];
    }
    return [{ text: plainAddressText(range.address), family: range.family, path }];
  });
}

function endpointKey(
  { metadata }: ClusterService,
  portName: string | undefined,
  protocol: string,
  family: 4 | 6,
): string {
  return `${metadata.namespace}/${metadata.name} ${portName ?? ""} ${protocol} ${family}`;
}

/** Of several slices together; an address that stands in two of them is one endpoint. */
function endpointsByPort(slices: readonly ClusterEndpointSlice[]): ReadonlyMap<string, readonly ServiceEndpoint[]> {
  const byPort = new Map<string, Map<string, ServiceEndpoint>>();
  for (const slice of slices) {
    const name = slice.metadata.labels?.[serviceNameLabel];
    const family = families[slice.addressType];
    if (name === undefined || family === undefined) continue;
    const owner = { metadata: { name, namespace: slice.metadata.namespace }, spec: { ports: [] } };
    const endpoints = slice.endpoints.flatMap((endpoint) => readEndpoint(endpoint, family));
    for (const { name: portName, port, protocol = "TCP" } of slice.ports) {
      if (port === undefined) continue;
      const key = endpointKey(owner, portName, protocol.toLowerCase(), family);
      const all = byPort.get(key) ?? new Map<string, ServiceEndpoint>();
      byPort.set(key, all);
      for (const endpoint of endpoints) {
        const at = `${endpoint.address} ${port}`;
        if (all.get(at)?.isReady !== true) all.set(at, { ...endpoint, port });
      }
    }
  }
  return new Map([...byPort].map(([key, all]) => [key, [...all.values()].sort(byAddress)]));
}

const families: Readonly<Record<string, 4 | 6>> = { IPv4: 4, IPv6: 6 };

/** So that the same pods in another order are the same rules. */
function byAddress(a: ServiceEndpoint, b: ServiceEndpoint): number {
  return a.address === b.address ? a.port - b.port : a.address < b.address ? -1 : 1;
}

function readEndpoint(
  { addresses, conditions = {}, nodeName }: ClusterEndpointSlice["endpoints"][number],
  family: 4 | 6,
): readonly Omit<ServiceEndpoint, "port">[] {
  const bytes = addressBytes(addresses[0] ?? "");
  if (bytes?.length !== (family === 4 ? 4 : 16)) return [];
  const { ready = true, serving = ready, terminating = false } = conditions;
  return [
    {
      address: plainAddressText(bytes),
      ...(nodeName === undefined ? {} : { nodeName }),
      isReady: ready,
      isServing: serving,
      isTerminating: terminating,
    },
  ];
}
