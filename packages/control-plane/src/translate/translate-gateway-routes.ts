// Gateway servers and the VirtualServices bound to them → one route table a port, in which all of them share hosts.
import { create } from "@bufbuild/protobuf";
import { type RouteConfiguration, RouteConfigurationSchema } from "@tulle/xds/envoy/config/route/v3/route_pb";
import { type Route, type VirtualHost, VirtualHostSchema } from "@tulle/xds/envoy/config/route/v3/route_components_pb";
import type { GatewayPort, GatewayPortServer, GatewayShared } from "../scope/proxy-view.ts";
import { hostIntersection } from "../snapshot/host-match.ts";
import type { MeshVirtualService } from "../snapshot/mesh-snapshot.ts";
import { catchAllLast, virtualServiceRoutes } from "./http-routes.ts";
import { bracketed, gatewayRouteName, withPort } from "./names.ts";
import { sendPeerMetadata } from "./peer-metadata.ts";

export function translateGatewayRoutes(view: GatewayShared, port: GatewayPort): RouteConfiguration {
  const services = new Map(view.services.map((service) => [service.hostname, service]));
  const routesByHost = new Map<string, Route[]>();
  for (const virtualService of view.virtualServices) {
    const hosts = new Set(port.servers.flatMap((server) => sharedHosts(server, virtualService)));
    for (const host of hosts) {
      const routes = virtualServiceRoutes(virtualService, { services, port: port.port });
      routesByHost.set(host, [...(routesByHost.get(host) ?? []), ...routes]);
    }
  }
  const virtualHosts = [...routesByHost].map(([host, routes]) => virtualHost(host, port.port, routes));
  return create(RouteConfigurationSchema, {
    name: gatewayRouteName(port.targetPort),
    virtualHosts: virtualHosts.length > 0 ? virtualHosts : [blackHole(port.port)],
    validateClusters: false,
    ignorePortInHostMatching: true,
  });
}

/** The hosts for which a VirtualService holds at a server: those that both name, the narrower of each pair. */
function sharedHosts(server: GatewayPortServer, virtualService: MeshVirtualService): readonly string[] {
  if (!virtualService.gateways.includes(server.gateway)) return [];
  return server.hosts.flatMap((serverHost) => {
    const pattern = hostSeenFrom(serverHost, server, virtualService.namespace);
    if (pattern === undefined) return [];
    return virtualService.gatewayHosts.flatMap((host) => hostIntersection(pattern.toLowerCase(), host) ?? []);
  });
}

/** `namespace/host` admits VirtualServices of that namespace only; `.` is the Gateway's own (Istio: Server.hosts). */
function hostSeenFrom(host: string, server: GatewayPortServer, namespace: string): string | undefined {
  const slash = host.indexOf("/");
  if (slash < 0) return host;
  const allowed = host.slice(0, slash);
  const own = server.gateway.slice(0, server.gateway.indexOf("/"));
  const admits = allowed === "*" || allowed === namespace || (allowed === "." && own === namespace);
  return admits ? host.slice(slash + 1) : undefined;
}

function virtualHost(host: string, port: number, routes: readonly Route[]): VirtualHost {
  return create(VirtualHostSchema, {
    name: withPort(host, port),
    domains: [bracketed(host)],
    routes: catchAllLast(routes),
    includeRequestAttemptCount: true,
    requestHeadersToAdd: [sendPeerMetadata()],
  });
}

/** A Gateway without a VirtualService listens and answers 404. */
function blackHole(port: number): VirtualHost {
  return create(VirtualHostSchema, { name: `blackhole:${port}`, domains: ["*"] });
}
