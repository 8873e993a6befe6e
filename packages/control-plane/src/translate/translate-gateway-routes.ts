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
import type { GatewayPort, GatewayRoutes } from "../scope/proxy-view.ts";
import type { MeshBrowserLogin } from "../snapshot/browser-logins.ts";
import { hostIntersection } from "../snapshot/host-match.ts";
import { enabledLogins, loginRoutes } from "./browser-login.ts";
import { catchAllLast, virtualServiceRoutes } from "./http-routes.ts";
import { withinEntryPorts } from "./entry-port-routes.ts";
import { bracketed, gatewayRouteName, withPort } from "../names/resource-names.ts";
import { outsideHosts, virtualHostWithPeers } from "./peer-metadata.ts";

export function translateGatewayRoutes(view: GatewayRoutes, port: GatewayPort): RouteConfiguration {
  const services = new Map(view.services.map((service) => [service.hostname, service]));
  const refused = new Set(view.refusedClusters);
  const routesByHost = new Map<string, Route[]>();
  for (const virtualService of view.virtualServices) {
    const gatewaysOf = Map.groupBy(
      port.servers.flatMap((server) => sharedHosts(server, virtualService).map((host) => ({ host, server }))),
      ({ host }) => host,
    );
    for (const [host, servers] of gatewaysOf) {
      const gateways = servers.map(({ server }) => server.gateway);
      const made = virtualServiceRoutes(virtualService, { services, port: port.port, gateways, refused });
      const routes = withinEntryPorts(made, services);
      // A host without a route of its own is still one of those that a wildcard stands for.
      if (routes.length > 0) routesByHost.set(host, [...(routesByHost.get(host) ?? []), ...routes]);
    }
  }
  const outside = outsideHosts(view.services);
  const redirected = new Set(port.servers.filter((each) => each.httpsRedirect === true).flatMap(hostNames));
  // A host that is redirected needs no route to be so.
  for (const host of redirected) if (!routesByHost.has(host)) routesByHost.set(host, []);
  const isRedirected = (host: string): boolean => [...redirected].some((pattern) => hostCovers(pattern, host));
  const virtualHosts = [...routesByHost].map(([host, routes]) =>
    virtualHostWithPeers(virtualHost(host, port.port, routes, isRedirected(host), loginsAt(view, port, host)), outside),
  );
  return create(RouteConfigurationSchema, {
    name: port.routeName ?? gatewayRouteName(port.targetPort),
    virtualHosts: virtualHosts.length > 0 ? virtualHosts : [blackHole(port.port)],
    validateClusters: false,
    ignorePortInHostMatching: true,
  });
}

function virtualHost(
  host: string,
  port: number,
  routes: readonly Route[],
  isRedirected: boolean,
  logins: readonly MeshBrowserLogin[],
): VirtualHost {
  return create(VirtualHostSchema, {
    name: withPort(host, port),
    domains: [bracketed(host)],
    routes: [...loginRoutes(logins), ...catchAllLast(routes)],
    typedPerFilterConfig: enabledLogins(logins),
    ...(isRedirected ? { requireTls: TlsRequirement.ALL } : {}),
    includeRequestAttemptCount: true,
  });
}

/** Sign-ins that have a host in common with the virtual host; which of its requests are theirs, they say themselves. */
function loginsAt({ logins = [] }: GatewayRoutes, port: GatewayPort, host: string): readonly MeshBrowserLogin[] {
  const gateways = new Set(port.servers.map(({ gateway }) => gateway));
  return logins.filter(
    (login) =>
      login.gateways.some((name) => gateways.has(name)) &&
      login.hosts.some((own) => hostIntersection(own, host) !== undefined),
  );
}

/** A Gateway without a VirtualService listens and answers 404. */
function blackHole(port: number): VirtualHost {
  return create(VirtualHostSchema, { name: `blackhole:${port}`, domains: ["*"] });
}
