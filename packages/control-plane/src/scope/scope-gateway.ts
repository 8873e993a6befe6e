// (snapshot, gateway) → view: the Gateways that select the workload, the VirtualServices bound to them, and the Services that
// these lead to.
import type { MeshGateway, MeshSnapshot, MeshVirtualService } from "../snapshot/mesh-snapshot.ts";
import type { Proxy } from "./proxy.ts";
import type { GatewayOwn, GatewayPort, GatewayPortServer, GatewayShared } from "./proxy-view.ts";
import { resolveTargetPort, scopedService, selects, servicesOf } from "./scope-sidecar.ts";
import { workloadSecurity } from "./workload-security.ts";

/** Protocols of a Gateway server whose bytes are plain HTTP; the others have no listener yet, and their schema says so. */
const plainHttp: ReadonlySet<string> = new Set(["HTTP", "HTTP2", "GRPC", "GRPC-WEB"]);

export function gatewayShared(snapshot: MeshSnapshot, proxy: Proxy): GatewayShared {
  const gateways = snapshot.gateways.filter((gateway) => selects(gateway.selector, proxy.labels));
  const names = new Set(gateways.map(gatewayKey));
  const virtualServices = snapshot.virtualServices.filter((each) => each.gateways.some((name) => names.has(name)));
  const wanted = destinationHosts(virtualServices);
  return {
    type: "router",
    namespace: proxy.namespace,
    ports: gatewayPorts(snapshot, proxy, gateways),
    virtualServices,
    services: snapshot.services
      .filter((service) => wanted.has(service.hostname))
      .map((service) => scopedService(snapshot, service, proxy.namespace)),
  };
}

export function gatewayOwn(snapshot: MeshSnapshot, shared: GatewayShared, proxy: Proxy): GatewayOwn {
  return {
    type: "router",
    address: proxy.address,
    interceptionMode: proxy.interceptionMode,
    targetPorts: shared.ports.map((port) => port.targetPort),
    publishedPorts: proxy.publishedPorts,
    ...workloadSecurity(snapshot, proxy),
  };
}

function gatewayKey(gateway: MeshGateway): string {
  return `${gateway.namespace}/${gateway.name}`;
}

function destinationHosts(virtualServices: readonly MeshVirtualService[]): ReadonlySet<string> {
  const routes = virtualServices.flatMap((virtualService) => virtualService.http);
  return new Set(routes.flatMap((route) => (route.route ?? []).map((each) => each.destination.host)));
}

function gatewayPorts(snapshot: MeshSnapshot, proxy: Proxy, gateways: readonly MeshGateway[]): readonly GatewayPort[] {
  const byTargetPort = new Map<number, { targetPort: number; port: number; servers: GatewayPortServer[] }>();
  for (const gateway of gateways) {
    for (const { port, protocol, hosts } of gateway.servers) {
      if (!plainHttp.has(protocol.toUpperCase())) continue;
      const targetPort = gatewayTargetPort(snapshot, proxy, port);
      const server = { gateway: gatewayKey(gateway), hosts };
      const merged = byTargetPort.get(targetPort);
      if (merged === undefined) byTargetPort.set(targetPort, { targetPort, port, servers: [server] });
      else merged.servers.push(server);
    }
  }
  return [...byTargetPort.values()].sort((a, b) => a.targetPort - b.targetPort);
}

/** A Gateway speaks of the ports of its workload's Service; a port that no such Service has is the pod's own (as in Istio). */
function gatewayTargetPort(snapshot: MeshSnapshot, proxy: Proxy, port: number): number {
  for (const service of servicesOf(snapshot, proxy)) {
    const match = service.ports.find((each) => each.number === port);
    if (match === undefined) continue;
    const targetPort = resolveTargetPort(match.targetPort, proxy.podPorts);
    if (targetPort !== undefined) return targetPort;
  }
  return port;
}
