// Outbound side of a sidecar → the route table `http_proxy`: a virtual host for each port of each Service under all the
// names that a client of this namespace may use, one for each other host with routes, and `allow_any` for the rest of
// the world.
import { create } from "@bufbuild/protobuf";
import { hostCovers, isHttp, passesConnections, type PortProtocol } from "@tulle/config";
import { type RouteConfiguration, RouteConfigurationSchema } from "@tulle/xds/envoy/config/route/v3/route_pb";
import {
  type Route,
  RouteSchema,
  type VirtualHost,
  VirtualHostSchema,
} from "@tulle/xds/envoy/config/route/v3/route_components_pb";
import type { CapturedOutbound, SidecarRoutes } from "../scope/proxy-view.ts";
import { requestPortsOfPods } from "../scope/captured-pods.ts";
import { HostIndex } from "../snapshot/host-match.ts";
import type { MeshPort, MeshService, MeshVirtualService } from "../snapshot/mesh-snapshot.ts";
import { catchAllLast, defaultRoute, podRoute, type RouteContext, virtualServiceRoutes } from "./http-routes.ts";
import { noTimeout } from "./messages.ts";
import { bracketed, httpProxyRoute, passthroughCluster, withPort } from "../names/resource-names.ts";
import { outsideHosts, peerMetadataHeader, virtualHostWithPeers } from "./peer-metadata.ts";
import { tunnelRoutes } from "./tunnel-routes.ts";

const httpPort = 80;

/** The table of the explicit proxy. */
export function translateSidecarRoutes(view: SidecarRoutes): RouteConfiguration {
  const hosts = [...serviceHosts(view), ...otherHosts(view), ...unknownPort(view)];
  return routeTable(httpProxyRoute, hosts, outsideHosts(view.services), otherwise(view));
}

/**
 * One table for each port with requests, and one for each port whose protocol its first bytes tell, which has a
 * listener for itself. Hosts that no Service has are reached on port 80.
 */
export function translateCapturedRoutes(
  view: SidecarRoutes,
  { httpPorts, connections }: CapturedOutbound,
): readonly RouteConfiguration[] {
  const byPort = Map.groupBy(
    serviceHosts(view).filter(({ protocol }) => isHttp(protocol)),
    ({ port }) => port,
  );
  const rest = otherwise(view);
  const outside = outsideHosts(view.services);
  const ofPorts = httpPorts.map((port) => {
    const hosts = byPort.get(port) ?? [];
    return routeTable(String(port), port === httpPort ? [...hosts, ...otherHosts(view)] : hosts, outside, rest);
  });
  const detected = new Set(connections.flatMap(({ routeName }) => routeName ?? []));
  const ofServices = [...byPort.values()]
    .flat()
    .filter(({ name }) => detected.has(name))
    .map(({ name, routes }) => routeTable(name, [{ name, domains: ["*"], routes }], outside));
  return [...ofPorts, ...ofServices];
}

/** What becomes of requests to hosts that no Service and no rule has. */
function otherwise({ registryOnly }: SidecarRoutes): VirtualHost {
  return registryOnly === true ? blockAll() : allowAny();
}

function routeTable(
  name: string,
  hosts: readonly NamedRoutes[],
  outside: ReadonlySet<string>,
  rest?: VirtualHost,
): RouteConfiguration {
  const taken = new Set<string>();
  const virtualHosts = hosts.flatMap(({ name: hostName, domains, routes }) => {
    // Envoy refuses a table in which two virtual hosts share a domain: the first one keeps it.
    const free = domains.filter((domain) => !taken.has(domain));
    for (const domain of free) taken.add(domain);
    return free.length === 0 ? [] : [meshVirtualHost(hostName, free, routes, outside)];
  });
  return create(RouteConfigurationSchema, {
    name,
    virtualHosts: [...virtualHosts, ...(rest === undefined ? [] : [rest])],
    validateClusters: false,
  });
}

interface NamedRoutes {
  readonly name: string;
  readonly domains: readonly string[];
  readonly routes: readonly Route[];
}

function meshVirtualHost(
  name: string,
  domains: string[],
  routes: readonly Route[],
  outside: ReadonlySet<string>,
): VirtualHost {
  return virtualHostWithPeers({ name, domains, routes: [...routes], includeRequestAttemptCount: true }, outside);
}

interface ServiceRoutes extends NamedRoutes {
  readonly port: number;
  readonly protocol: PortProtocol;
}

function serviceHosts(view: SidecarRoutes): ServiceRoutes[] {
  const context = routeContext(view);
  const { services, refused } = context;
  const byHost = new HostIndex(view.virtualServices.flatMap((each) => each.hosts.map((host) => [host, each] as const)));
  return view.services.flatMap((service) => {
    const virtualService = byHost.find(service.hostname);
    const requestRoutes = ({ number }: MeshPort): readonly Route[] => {
      const routes = virtualService === undefined ? [] : orderedRoutes(virtualService, context, number);
      // A VirtualService that has nothing to say of this port leaves it as it is (Istio: "no routes matched").
      return routes.length === 0 ? [defaultRoute(service, number, refused)] : routes;
    };
    const routesOf = (port: MeshPort): readonly Route[] => [
      ...(passesConnections(port.protocol) && view.captured === undefined
        ? tunnelRoutes(service, port, virtualService, services, refused)
        : []),
      ...(isHttp(port.protocol) ? requestRoutes(port) : []),
    ];
    const ofPods = view.captured === undefined ? [] : podHosts(service, view.namespace, refused);
    const ofService = service.ports
      .filter((port) => port.protocol !== "udp")
      .map((port) => ({
        port: port.number,
        protocol: port.protocol,
        name: withPort(service.hostname, port.number),
        domains: domainsOf(
          serviceNames(service, view.namespace),
          port.number,
          // A host that is looked up as it stands there says its port, unless it is HTTP's own.
          view.captured !== undefined && service.entry?.resolution !== "DYNAMIC_DNS",
        ),
        routes: routesOf(port),
      }));
    return [...ofService, ...ofPods];
  });
}

/** Pods of a headless Service by names of their own (`database-0.database.shop`): where the client dials. */
function podHosts(service: MeshService, namespace: string, refused: ReadonlySet<string>): ServiceRoutes[] {
  const names = serviceNames(service, namespace).map((name) => `*.${name}`);
  return service.ports.flatMap((port) =>
    requestPortsOfPods(service, port).map((dialled) => ({
      port: dialled,
      protocol: port.protocol,
      name: withPort(`*.${service.hostname}`, dialled),
      domains: domainsOf(names, dialled, true),
      routes: [podRoute(service, port.number, refused)],
    })),
  );
}

/**
 * Hosts of VirtualServices that no Service has; they are reached on port 80. Without a route they stay what they are to
 * others.
 */
function otherHosts(view: SidecarRoutes): NamedRoutes[] {
  const context = routeContext(view);
  return view.virtualServices.flatMap((virtualService) =>
    virtualService.hosts
      .filter((host) => host !== "*" && !coversService(host, context.services))
      .map((host) => ({
        name: withPort(host, httpPort),
        domains: domainsOf([host], httpPort),
        routes: orderedRoutes(virtualService, context, httpPort),
      }))
      .filter(({ routes }) => routes.length > 0),
  );
}

/**
 * A port that a Service of the mesh does not have answers 404: outside the mesh the name means nothing. Hosts of
 * ServiceEntries have other ports there.
 */
function unknownPort(view: SidecarRoutes): NamedRoutes[] {
  const ofCluster = view.services.filter(({ entry }) => entry === undefined);
  const names = ofCluster.flatMap((service) => serviceNames(service, view.namespace));
  const domains = names.filter((name) => !name.includes(":")).flatMap((name) => [name, `${name}:*`]);
  return [{ name: "unknown_port", domains, routes: [] }];
}

function coversService(host: string, services: ReadonlyMap<string, MeshService>): boolean {
  if (!host.startsWith("*")) return services.has(host);
  return [...services.keys()].some((hostname) => hostCovers(host, hostname));
}

type SidecarContext = Pick<RouteContext, "services" | "refused">;

function routeContext({ services, refusedClusters }: SidecarRoutes): SidecarContext {
  return {
    services: new Map(services.map((service) => [service.hostname, service])),
    refused: new Set(refusedClusters),
  };
}

function orderedRoutes(virtualService: MeshVirtualService, context: SidecarContext, port: number): readonly Route[] {
  return catchAllLast(virtualServiceRoutes(virtualService, { ...context, port, gateways: ["mesh"] }));
}

/** Every name of a Service that a pod of `namespace` can resolve, and its addresses. */
function serviceNames(service: MeshService, namespace: string): readonly string[] {
  const { name, namespace: own, hostname, addresses, entry } = service;
  if (entry !== undefined) return [hostname, ...addresses];
  const short = own === namespace ? [name] : [];
  return [hostname, ...short, `${name}.${own}`, `${name}.${own}.svc`, ...addresses];
}

/**
 * One listener serves all ports of the explicit proxy: a name without a port means port 80 (Istio:
 * mergeAllVirtualHosts). In the table of one port it means that.
 */
function domainsOf(names: readonly string[], port: number, isTableOfPort = false): readonly string[] {
  return names.flatMap((name) => {
    return port === httpPort || isTableOfPort ? [bracketed(name), withPort(name, port)] : [withPort(name, port)];
  });
}

/**
 * Everything else leaves the mesh (ALLOW_ANY), tunnels too: a CONNECT has no path, so that only its own matcher finds
 * it. A CONNECT to a port of the mesh that is named HTTP finds no route, since it would go past the rules for requests.
 * Peers outside are told nothing of the workload.
 */
function allowAny(): VirtualHost {
  const forward = { clusterSpecifier: { case: "cluster", value: passthroughCluster } as const, timeout: noTimeout() };
  return create(VirtualHostSchema, {
    name: "allow_any",
    domains: ["*"],
    routes: [
      create(RouteSchema, {
        name: "allow_any",
        match: { pathSpecifier: { case: "connectMatcher", value: {} } },
        action: {
          case: "route",
          value: { ...forward, upgradeConfigs: [{ upgradeType: "CONNECT", connectConfig: {} }] },
        },
      }),
      create(RouteSchema, {
        name: "allow_any",
        match: { pathSpecifier: { case: "prefix", value: "/" } },
        action: { case: "route", value: forward },
      }),
    ],
    includeRequestAttemptCount: true,
    requestHeadersToRemove: [peerMetadataHeader],
  });
}

/**
 * Istio's answer where nothing but the mesh is to be reached (outboundTrafficPolicy REGISTRY_ONLY); a CONNECT has no
 * path.
 */
function blockAll(): VirtualHost {
  const action = { case: "directResponse", value: { status: 502 } } as const;
  const matches = [
    { case: "connectMatcher", value: {} },
    { case: "prefix", value: "/" },
  ] as const;
  return create(VirtualHostSchema, {
    name: "block_all",
    domains: ["*"],
    routes: matches.map((pathSpecifier) =>
      create(RouteSchema, { name: "block_all", match: { pathSpecifier }, action }),
    ),
  });
}
