// ServiceEntries → services of the snapshot, one for each host.
import {
  allocatesAddresses,
  entryHosts,
  entryProtocol,
  entryResolution,
  exportedTo,
  isSingleAddress,
  rangeText,
  type MeshConfig,
  oldestFirst,
  type ServiceEntry,
  splitIpBlock,
} from "@tulle/config";
import { endpointOf, type WorkloadFacts, writtenEndpoints } from "./addressed-workloads.ts";
import type { MeshEndpoint, MeshPort, MeshService, MeshServiceEntry } from "./mesh-snapshot.ts";
import type { ResourceReader } from "./resource-reader.ts";
import { entryKey, type ServiceWorkloads } from "./service-workloads.ts";

export interface EntryOptions extends WorkloadFacts {
  readonly meshConfig: Pick<MeshConfig, "defaultServiceExportTo">;
  readonly workloads: ServiceWorkloads | undefined;
  /** Services of the cluster: they keep their names and addresses. */
  readonly services: readonly MeshService[];
}

/** A host that a Service has stays with it; of entries of one namespace with the same host the oldest has it. */
export function entryServices(store: ResourceReader, options: EntryOptions): readonly MeshService[] {
  const entries = oldestFirst(store.list("ServiceEntry"));
  const ofCluster = new Set(options.services.map(({ hostname }) => hostname));
  const written = entries.flatMap(({ spec }) => singleAddresses(spec));
  const allocate = allocator([...options.services.flatMap(({ addresses }) => addresses), ...written]);
  const taken = new Set<string>();
  return entries.flatMap((entry) =>
    entryHosts(entry).flatMap((hostname) => {
      const key = `${entry.metadata.namespace}/${hostname}`;
      if (ofCluster.has(hostname) || taken.has(key)) return [];
      taken.add(key);
      return [entryService(entry, hostname, allocate, options)];
    }),
  );
}

/** Its endpoints are sent, and not looked up by the proxy. */
export function hasSentEndpoints({ entry }: Pick<MeshService, "entry">): boolean {
  return entry === undefined || entry.resolution === "STATIC";
}

function entryService(
  entry: ServiceEntry,
  hostname: string,
  allocate: (name: string) => readonly string[],
  { meshConfig, workloads, services, ...facts }: EntryOptions,
): MeshService {
  const { metadata, spec } = entry;
  const { name, namespace } = metadata;
  const ports = entryPorts(spec);
  const isAllocated = (spec.addresses ?? []).length === 0 && !hostname.startsWith("*") && allocatesAddresses(entry);
  const namespaces = exportedTo(spec.exportTo, namespace, meshConfig.defaultServiceExportTo);
  const { identities } = workloads?.get(entryKey(namespace, name)) ?? {};
  return {
    hostname,
    name: hostname,
    namespace,
    addresses: isAllocated ? allocate(`${namespace}/${hostname}`) : ownAddresses(spec, services),
    selector: spec.workloadSelector?.labels ?? {},
    ports,
    ...(workloads === undefined ? {} : { identities: identities ?? [] }),
    ...(namespaces === undefined ? {} : { exportedTo: namespaces }),
    entry: meshEntry(entry, hostname, ports, facts),
  };
}

function entryPorts({ ports = [] }: ServiceEntry["spec"]): readonly MeshPort[] {
  return ports.map(({ name, number, targetPort = number, protocol = "" }) => ({
    name,
    number,
    targetPort,
    protocol: entryProtocol(protocol) ?? "tcp",
  }));
}

function meshEntry(
  entry: ServiceEntry,
  hostname: string,
  ports: readonly MeshPort[],
  facts: WorkloadFacts,
): MeshServiceEntry {
  const { metadata, spec } = entry;
  const resolution = entryResolution(entry);
  const isLookedUp = resolution === "DNS" || resolution === "DNS_ROUND_ROBIN";
  const { subjectAltNames = [] } = spec;
  const ranges = rangesOf(spec);
  return {
    resource: metadata.name,
    resolution,
    ...(spec.location === "MESH_INTERNAL" ? {} : { isExternal: true }),
    ...(subjectAltNames.length === 0 ? {} : { subjectAltNames }),
    ...(ranges.length === 0 ? {} : { ranges }),
    ...(isLookedUp ? { lookedUp: lookedUp(entry, hostname, ports, facts) } : {}),
  };
}

/** By the port of the service; the host itself where the entry has no endpoints. */
function lookedUp(
  entry: ServiceEntry,
  hostname: string,
  ports: readonly MeshPort[],
  facts: WorkloadFacts,
): NonNullable<MeshServiceEntry["lookedUp"]> {
  const { name, namespace } = entry.metadata;
  const workloads = writtenEndpoints(entry);
  const itself = (port: MeshPort): MeshEndpoint => ({
    address: hostname,
    port: Number(port.targetPort),
    labels: {},
    workload: name,
    namespace,
  });
  const endpointsAt = (port: MeshPort): readonly MeshEndpoint[] =>
    (entry.spec.endpoints ?? []).length === 0
      ? [itself(port)]
      : workloads.map((workload) => endpointOf(workload, port, facts));
  return Object.fromEntries(ports.map((port) => [port.number, endpointsAt(port)]));
}

/** What is a Service's stays with it, whatever an entry of anybody says. */
function ownAddresses(spec: ServiceEntry["spec"], services: readonly MeshService[]): readonly string[] {
  const taken = new Set(services.flatMap(({ addresses }) => addresses));
  return singleAddresses(spec).filter((address) => !taken.has(address));
}

function rangesOf({ addresses = [] }: ServiceEntry["spec"]): readonly string[] {
  const ranges = addresses.filter((text) => {
    const block = splitIpBlock(text);
    return block !== undefined && !isSingleAddress(block);
  });
  return [...new Set(ranges.flatMap((text) => rangeText(text) ?? []))];
}

function singleAddresses({ addresses = [] }: ServiceEntry["spec"]): readonly string[] {
  return addresses.flatMap((text) => {
    const block = splitIpBlock(text);
    return block !== undefined && isSingleAddress(block) ? [block.address] : [];
  });
}

/**
 * Of 240.240.0.0/16 and of 2001:2::/48, which nobody routes (Istio's ranges), without the first and last of so many
 * addresses.
 */
const allocatable = 65_534;

/**
 * Addresses by name, one of each family: the same as long as the name is there, unless a name before it comes to have
 * the same hash. They are kept nowhere, and every control plane makes the same.
 */
function allocator(reserved: readonly string[]): (name: string) => readonly string[] {
  // Addresses of IPv6 have several texts.
  const taken = new Set(reserved.map(rangeText));
  return (name) => {
    const first = hash(name) % allocatable;
    for (let step = 0; step < allocatable; step++) {
      const number = ((first + step) % allocatable) + 1;
      const addresses = [`240.240.${number >> 8}.${number & 255}`, `2001:2::${number.toString(16)}`];
      if (addresses.some((each) => taken.has(rangeText(each)))) continue;
      for (const each of addresses) taken.add(rangeText(each));
      return addresses;
    }
    return [];
  };
}

/** FNV-1a of 32 bits. */
function hash(text: string): number {
  let value = 0x81_1c_9d_c5;
  for (const byte of Buffer.from(text)) value = Math.imul(value ^ byte, 0x01_00_01_93);
  return value >>> 0;
}
