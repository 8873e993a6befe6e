// Gateway servers and the VirtualServices bound to them → one route table a port, in which all of them share hosts.
import { create } from "@bufbuild/protobuf";
import { hostCovers } from "@tulle/config";
import { type RouteConfiguration, RouteConfigurationSchema } from "@tulle/xds/envoy/config/route/v3/route_pb";
import {
  type Route,
  type VirtualHost,
  VirtualHost_TlsRequirementType as TlsRequirement,
  VirtualHostSchema,
} from "@tulle/xds/envoy/config/route/v3/route_components_pb";
import { sharedHosts } from "../scope/gateway-hosts.ts";
import { hostNames } from "../scope/gateway-listeners.ts";
import type { GatewayPort, GatewayShared } from "../scope/proxy-view.ts";
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
  const redirected = new Set(port.servers.filter((each) => each.httpsRedirect === true).flatMap(hostNames));
  // A host that is redirected needs no route to be so.
  for (const host of redirected) if (!routesByHost.has(host)) routesByHost.set(host, []);
  const isRedirected = (host: string): boolean => [...redirected].some((pattern) => hostCovers(pattern, host));
  const virtualHosts = [...routesByHost].map(([host, routes]) =>
    virtualHost(host, port.port, routes, isRedirected(host)),
  );
  return create(RouteConfigurationSchema, {
    name: port.routeName ?? gatewayRouteName(port.targetPort),
    virtualHosts: virtualHosts.length > 0 ? virtualHosts : [blackHole(port.port)],
    validateClusters: false,
    ignorePortInHostMatching: true,
  });
}

function virtualHost(host: string, port: number, routes: readonly Route[], isRedirected: boolean): VirtualHost {
  return create(VirtualHostSchema, {
    name: withPort(host, port),
    domains: [bracketed(host)],
    routes: catchAllLast(routes),
    ...(isRedirected ? { requireTls: TlsRequirement.ALL } : {}),
    includeRequestAttemptCount: true,
    requestHeadersToAdd: [sendPeerMetadata()],
  });
}

/** A Gateway without a VirtualService listens and answers 404. */
function blackHole(port: number): VirtualHost {
  return create(VirtualHostSchema, { name: `blackhole:${port}`, domains: ["*"] });
}
