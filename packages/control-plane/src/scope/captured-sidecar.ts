// What a sidecar needs besides, to which the kernel redirects all of its workload's connections: addresses at which it
// takes those to Services, and what it does with those to ports of its own that no Service leads to.
import { isIP, isIPv6 } from "node:net";
import { isHttp, passesConnections, type TlsRoute } from "@tulle/config";
import { HostIndex } from "../snapshot/host-match.ts";
import type { MeshPort, MeshService, MeshVirtualService } from "../snapshot/mesh-snapshot.ts";
import { blackHoleCluster, capturedPorts, connectionClusterName, withPort } from "../names/resource-names.ts";
import { isDialledByPod, requestPortsOfPods } from "./captured-pods.ts";
import { connectionDestinations, isMeantForMesh, namedAtPort } from "./connection-destinations.ts";
import type { ConnectionDestination } from "./gateway-view.ts";
import type {
  CapturedConnections,
  CapturedOutbound,
  CapturedPods,
  CapturedRange,
  SidecarRoutes,
} from "./proxy-view.ts";
import type { Proxy } from "./proxy.ts";

/** Of the families that the workload has addresses of, IPv4 first. */
export function anyAddresses({ address, instanceIps = [address] }: Proxy): readonly string[] {
  const hasIpv4 = instanceIps.some((ip) => isIP(ip) === 4);
  const hasIpv6 = instanceIps.some((ip) => isIPv6(ip));
  return [...(hasIpv4 || !hasIpv6 ? ["0.0.0.0"] : []), ...(hasIpv6 ? ["::"] : [])];
}

/** Whether the workload can go to an address, by `anyAddresses`. */
export function isOfFamilies(families: readonly string[], address: string): boolean {
  return families.includes(isIPv6(address) ? "::" : "0.0.0.0");
}

/** The port of the proxy's own that redirected connections come to is nobody's. */
function isFree(port: MeshPort): boolean {
  return port.protocol !== "udp" && port.number !== capturedPorts.outbound && port.number !== capturedPorts.inbound;
}

/** Requests to one port are told apart by their host, whatever address they go to; connections by their address. */
export function capturedOutbound(routes: Omit<SidecarRoutes, "captured">): CapturedOutbound {
  const httpPorts = new Set<number>();
  const connections = new Map<string, CapturedConnections>();
  const services = new Map(routes.services.map((service) => [service.hostname, service]));
  const rules = new HostIndex(
    routes.virtualServices.flatMap((each) => each.hosts.map((host) => [host, each] as const)),
  );
  const refused = new Set(routes.refusedClusters);
  const ranges = new Map<string, CapturedRange>();
  const pods: CapturedPods[] = [];
  for (const service of routes.services) {
    const addresses = service.addresses.filter((address) => isIP(address) !== 0);
    for (const port of service.ports.filter(isFree)) {
      // A port of unknown protocol without an address of its own can only be known by its requests.
      if (isHttp(port.protocol) && (port.protocol !== "auto" || addresses.length === 0)) httpPorts.add(port.number);
      for (const number of requestPortsOfPods(service, port)) httpPorts.add(number);
      if (!passesConnections(port.protocol)) continue;
      const virtualService = rules.find(service.hostname);
      for (const each of capturedRanges(service, port, virtualService, services, refused)) {
        const key = `${each.port} ${each.range} ${each.serverNames.join()}`;
        if (!ranges.has(key)) ranges.set(key, each);
      }
      if (isDialledByPod(service, port)) {
        pods.push({
          hostname: service.hostname,
          port: port.number,
          // Requests are told apart by their host there as well.
          ...(port.protocol === "auto" ? { routeName: String(port.number) } : {}),
          ...connectionTargets(service, port, virtualService, services, refused),
        });
      }
      for (const address of addresses) {
        const key = withPort(address, port.number);
        const known = connections.get(key);
        if (known !== undefined) {
          if (isNamedBySni(service, port)) connections.set(key, withServerName(known, service, port, refused));
          continue;
        }
        connections.set(key, {
          address,
          port: port.number,
          ...(port.protocol === "auto" ? { routeName: withPort(service.hostname, port.number) } : {}),
          ...connectionTargets(service, port, virtualService, services, refused),
        });
      }
    }
  }
  return {
    ...(routes.registryOnly === undefined ? {} : { registryOnly: routes.registryOnly }),
    httpPorts: [...httpPorts].sort((a, b) => a - b),
    connections: [...connections.values()],
    ...(ranges.size === 0 ? {} : { ranges: [...ranges.values()] }),
    ...(pods.length === 0 ? {} : { pods }),
  };
}

/**
 * Of a ServiceEntry: one for each of its ranges and each name, since no two filter chains may match the same. Where
 * clients look up themselves and no address is written, any address is meant (Istio: buildSidecarOutboundListener).
 */
function capturedRanges(
  service: MeshService,
  port: MeshPort,
  virtualService: MeshVirtualService | undefined,
  services: ReadonlyMap<string, MeshService>,
  refused: ReadonlySet<string>,
): readonly CapturedRange[] {
  const { entry } = service;
  if (entry === undefined) return [];
  const { ranges = [], resolution } = entry;
  const isAny = isAnyAddress(service, port);
  const places = isAny ? [undefined] : ranges.map((range) => (range.endsWith("/0") ? undefined : range));
  const { byServerName = [], destinations } = connectionTargets(service, port, virtualService, services, refused);
  const itself = isNamedBySni(service, port) ? [service.hostname] : [];
  // Nothing else tells which of the hosts it covers is meant.
  const isUnnamed = resolution === "DYNAMIC_DNS" && itself.length === 0;
  const named = byServerName.flatMap((each) => each.serverNames.map((name) => ({ ...each, serverNames: [name] })));
  return places.flatMap((range) =>
    [...named, ...(isUnnamed ? [] : [{ serverNames: itself, destinations }])].map((each) => ({
      port: port.number,
      ...(range === undefined ? {} : { range }),
      ...each,
    })),
  );
}

/** No address is written, and clients know addresses that the mesh does not. */
function isAnyAddress({ entry, addresses }: MeshService, { protocol }: MeshPort): boolean {
  const { resolution, ranges = [] } = entry!;
  return (
    (resolution === "NONE" || resolution === "DYNAMIC_DNS") &&
    addresses.length + ranges.length === 0 &&
    protocol !== "auto"
  );
}

/** Hosts of ServiceEntries may share an address: TLS says which one is meant. */
function isNamedBySni({ entry, hostname }: MeshService, { protocol }: MeshPort): boolean {
  return entry !== undefined && (protocol === "https" || protocol === "tls") && hostname !== "*";
}

function withServerName(
  known: CapturedConnections,
  service: MeshService,
  port: MeshPort,
  refused: ReadonlySet<string>,
): CapturedConnections {
  const { hostname } = service;
  const { byServerName = [] } = known;
  if (byServerName.some(({ serverNames }) => serverNames.includes(hostname))) return known;
  const itself = { cluster: connectionClusterName(hostname, port), weight: 1, ...namedAtPort(service, port) };
  const destinations = reachable([itself], refused);
  return { ...known, byServerName: [...byServerName, { serverNames: [hostname], destinations }] };
}

/** By the server names of the VirtualService's `tls` routes; else by its `tcp` routes, else to the Service itself. */
function connectionTargets(
  service: MeshService,
  port: MeshPort,
  virtualService: MeshVirtualService | undefined,
  services: ReadonlyMap<string, MeshService>,
  refused: ReadonlySet<string>,
): Pick<CapturedConnections, "byServerName" | "destinations"> {
  const { tls = [], tcp = [] } = virtualService ?? {};
  const to = (route: TlsRoute["route"]): readonly ConnectionDestination[] =>
    reachable(
      connectionDestinations(route, port.number, (hostname) => services.get(hostname)),
      refused,
    );
  const taken = new Set<string>();
  const byServerName = tls.flatMap(({ match, route }) => {
    const names = match.filter((each) => isMeantForMesh(each, port.number)).flatMap(({ sniHosts }) => sniHosts);
    const serverNames = names.map((name) => name.toLowerCase()).filter((name) => name !== "*" && !taken.has(name));
    for (const name of serverNames) taken.add(name);
    return serverNames.length === 0 ? [] : [{ serverNames, destinations: to(route) }];
  });
  const rule =
    tcp.find(({ match = [] }) => match.length === 0 || match.some((each) => isMeantForMesh(each, port.number))) ??
    tls.find(({ match }) => match.some((each) => isMeantForMesh(each, port.number) && each.sniHosts.includes("*")));
  const itself = { cluster: connectionClusterName(service.hostname, port), weight: 1, ...namedAtPort(service, port) };
  return {
    ...(byServerName.length === 0 ? {} : { byServerName }),
    destinations: rule === undefined ? reachable([itself], refused) : to(rule.route),
  };
}

/** Nothing goes in the clear to who refuses that, nor past the rules to the address itself. */
function reachable(
  targets: readonly ConnectionDestination[],
  refused: ReadonlySet<string>,
): readonly ConnectionDestination[] {
  const isRefused = targets.every(({ cluster }) => refused.has(cluster));
  return isRefused ? [{ cluster: blackHoleCluster, weight: 1 }] : targets;
}
