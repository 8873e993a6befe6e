// Services → the names that agents answer DNS questions with (Istio: NDS, pkg/dns/server/name_table.go). Ports and
// targets, which SRV records are made of, are fields of our own: Istio's agents pass them over.
import { create } from "@bufbuild/protobuf";
import {
  type NameTable,
  type NameTable_NameInfo,
  type NameTable_NamedPort,
  NameTable_NamedPortSchema,
  NameTable_NameInfoSchema,
  NameTableSchema,
} from "@tulle/xds/istio/networking/nds/v1/nds_pb";
import { isOfFamilies } from "../scope/captured-sidecar.ts";
import {
  type EndpointSnapshot,
  type MeshEndpoint,
  type MeshService,
  servicePortKey,
} from "../snapshot/mesh-snapshot.ts";

/**
 * Istio: provider.Kubernetes, provider.External. The agent makes the short forms of a name itself, for those of
 * Kubernetes.
 */
const registries = { cluster: "Kubernetes", entry: "External" } as const;

/** `families`: see `anyAddresses`. Of an address of another one a client would have to find out that it is no use. */
export function translateNames(
  services: readonly MeshService[],
  endpoints: EndpointSnapshot,
  families: readonly string[],
): NameTable {
  const table: Record<string, NameTable_NameInfo> = {};
  for (const service of services) {
    const { hostname, name, namespace, addresses, ports, entry } = service;
    if (entry !== undefined) {
      const info = entryName(service, families);
      if (info !== undefined) table[hostname] = info;
      continue;
    }
    const own = { registry: registries.cluster, namespace };
    if (addresses.length > 0) {
      table[hostname] = create(NameTable_NameInfoSchema, {
        ...own,
        ips: [...addresses],
        shortname: name,
        ports: ports.map((port) => namedPort(port, port.number)),
      });
      continue;
    }
    // Headless: its name stands for its pods, and each of them has a name of its own.
    const pods = podsOf(service, endpoints);
    if (pods.size === 0) continue;
    const targets: string[] = [];
    for (const { address, hostname: podName = dashed(address) } of pods.values()) {
      const target = `${podName}.${hostname}`;
      const known = table[target];
      if (known === undefined) {
        targets.push(target);
        table[target] = create(NameTable_NameInfoSchema, { ...own, ips: [address], shortname: `${podName}.${name}` });
      } else known.ips.push(address);
    }
    table[hostname] = create(NameTable_NameInfoSchema, {
      ...own,
      ips: [...pods.keys()],
      shortname: name,
      // Its pods are asked at their own ports.
      ports: ports.map((port) => namedPort(port, endpointsOf(service, port, endpoints)[0]?.port ?? port.number)),
      targets,
    });
  }
  return create(NameTableSchema, { table });
}

/** Undefined where the name is the machine's business: nothing would be led to the mesh by it. */
function entryName(
  { hostname, namespace, addresses, ports }: MeshService,
  families: readonly string[],
): NameTable_NameInfo | undefined {
  const ips = addresses.filter((address) => isOfFamilies(families, address));
  if (ips.length === 0 || hostname.startsWith("*")) return undefined;
  return create(NameTable_NameInfoSchema, {
    registry: registries.entry,
    namespace,
    ips,
    ports: ports.map((port) => namedPort(port, port.number)),
  });
}

/** By address. */
function podsOf(service: MeshService, endpoints: EndpointSnapshot): ReadonlyMap<string, MeshEndpoint> {
  const all = service.ports.flatMap((port) => endpointsOf(service, port, endpoints));
  return new Map(
    all.flatMap((endpoint) =>
      [endpoint.address, ...(endpoint.otherAddresses ?? [])]
        .filter((address) => address !== "")
        .map((address) => [address, { ...endpoint, address }] as const),
    ),
  );
}

function endpointsOf(
  service: MeshService,
  { number }: Pick<MeshService["ports"][number], "number">,
  { byServicePort }: EndpointSnapshot,
): readonly MeshEndpoint[] {
  return byServicePort.get(servicePortKey(service, number)) ?? [];
}

function namedPort({ name, protocol }: MeshService["ports"][number], number: number): NameTable_NamedPort {
  return create(NameTable_NamedPortSchema, { name, number, isUdp: protocol === "udp" });
}

/** Of a pod without a host name, as Kubernetes' name server makes one of its address. */
function dashed(address: string): string {
  return address.replaceAll(/[.:]/g, "-");
}
