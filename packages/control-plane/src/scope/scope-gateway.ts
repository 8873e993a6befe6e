// (snapshot, gateway) → view: the Gateways that select the workload, the VirtualServices bound to them, and the
// Services that these lead to.
import { selects } from "@tulle/config";
import { hostCovers } from "@tulle/config";
import type { MeshBrowserLogin } from "../snapshot/browser-logins.ts";
import type { MeshGateway, MeshGatewayServer, MeshService, MeshSnapshot } from "../snapshot/mesh-snapshot.ts";
import type { MeshVirtualService } from "../snapshot/mesh-snapshot.ts";
import { gatewayListeners, hostNames, serverKind } from "./gateway-listeners.ts";
import { clientOf, seenBy } from "./client.ts";
import { Keyed } from "./keyed.ts";
import type { Proxy } from "./proxy.ts";
import type { GatewayClusters, GatewayOwn, GatewayPort, GatewayPortServer, GatewayRoutes } from "./proxy-view.ts";
import {
  foreignNetworks,
  pathsOf,
  reachableIn,
  resolveTargetPort,
  scopedService,
  servicesOf,
  workloadTls,
} from "./scope-sidecar.ts";
import { refusedClusters, type Uncertified } from "./uncertified.ts";
import { telemetryHosts, workloadTelemetry } from "./workload-telemetry.ts";
import { workloadSecurity } from "./workload-security.ts";

/** All that decides what gateways have in common. */
export interface GatewayGroup extends Pick<Proxy, "namespace" | "labels" | "podPorts"> {
  readonly uncertified?: Uncertified;
  /** As of sidecars. */
  readonly network?: string;
  /** Likewise. */
  readonly locality?: string;
}

export interface GatewayShared {
  readonly clusters: Keyed<GatewayClusters>;
  readonly routes: Keyed<GatewayRoutes>;
}

export function gatewayShared(snapshot: MeshSnapshot, group: GatewayGroup): GatewayShared {
  const gateways = gatewaysOf(snapshot, group);
  const names = new Set(gateways.map(gatewayKey));
  const seen = seenBy(snapshot, clientOf(snapshot, group));
  const virtualServices = seen.virtualServices.filter((each) => each.gateways.some((name) => names.has(name)));
  const passed = autoPassthrough(seen.services, gateways);
  const { uncertified } = group;
  const logins = loginsOf(snapshot, names, uncertified);
  const providers = logins.flatMap(({ provider }) => provider ?? []);
  const outside = providers.filter(({ service }) => service === undefined);
  const inside = providers.flatMap(({ service }) => service?.hostname ?? []);
  const authorizers = workloadSecurity(snapshot, group).security?.authorizers?.map(({ hostname }) => hostname) ?? [];
  const destinations = new Set([...destinationHosts(virtualServices), ...passed]);
  // Whom the proxy asks itself is not chosen by a client.
  const own = new Set([...inside, ...authorizers, ...telemetryHosts(snapshot, group)]);
  const visible = new Set(seen.services);
  const first = new Map(snapshot.services.toReversed().map((each) => [each.hostname, each]));
  for (const each of seen.services) first.set(each.hostname, each);
  const services = snapshot.services.filter(
    (each) =>
      (own.has(each.hostname) && first.get(each.hostname) === each) ||
      (visible.has(each) && destinations.has(each.hostname)),
  );
  const scoped = services.map((service) => scopedService(seen.destinationRules, service, group.namespace));
  return {
    clusters: Keyed.of<GatewayClusters>({
      type: "router",
      ...workloadTls(snapshot, uncertified),
      ...foreignNetworks(snapshot, group.network),
      ...(group.locality === undefined ? {} : { locality: group.locality }),
      services: scoped,
      ...(passed.length === 0 ? {} : { autoPassthrough: passed }),
      ...(outside.length === 0 ? {} : { tokenProviders: outside }),
    }),
    routes: Keyed.of<GatewayRoutes>({
      type: "router",
      ports: gatewayPorts(snapshot, group, gateways),
      virtualServices,
      services,
      ...(logins.length === 0 ? {} : { logins }),
      ...(snapshot.trustDomain === undefined ? {} : refusedClusters(scoped, uncertified)),
    }),
  };
}

export function gatewayOwn(snapshot: MeshSnapshot, shared: GatewayShared, proxy: Proxy): GatewayOwn {
  const { ports, virtualServices, logins } = shared.routes.value;
  const topology = proxy.gatewayTopology ?? snapshot.gatewayTopology;
  const plain = ports.filter(({ routeName }) => routeName === undefined).map(({ targetPort }) => targetPort);
  const servers = gatewaysOf(snapshot, proxy).flatMap((gateway) =>
    gateway.servers.map((server) => ({
      gateway: gatewayKey(gateway),
      server,
      targetPort: gatewayTargetPort(snapshot, proxy, server.port),
    })),
  );
  // A port speaks plain HTTP or something else: the first server decides, as in Istio's merge of Gateways.
  const listeners = gatewayListeners(
    servers.filter(({ targetPort }) => !plain.includes(targetPort)),
    { ...shared.clusters.value, ports, virtualServices },
  );
  const grpcWeb = plain.filter((port) =>
    servers.some(({ targetPort, server }) => targetPort === port && isGrpcWeb(server)),
  );
  return {
    type: "router",
    address: proxy.address,
    interceptionMode: proxy.interceptionMode,
    targetPorts: plain,
    ...(grpcWeb.length === 0 ? {} : { grpcWebPorts: grpcWeb }),
    ...(listeners.length === 0 ? {} : { connectionListeners: listeners }),
    ...(topology === undefined ? {} : { topology }),
    ...pathsOf(snapshot),
    ...workloadTelemetry(snapshot, proxy, reachableIn(shared.clusters.value)),
    ...gatewaySecurity(snapshot, proxy, logins),
  };
}

function isGrpcWeb({ protocol }: MeshGatewayServer): boolean {
  return protocol === "GRPC-WEB";
}

function gatewaySecurity(
  snapshot: MeshSnapshot,
  proxy: Proxy,
  logins: GatewayRoutes["logins"],
): Pick<GatewayOwn, "security"> {
  const own = workloadSecurity(snapshot, proxy);
  if (logins === undefined) return own;
  return { security: { ...(own.security ?? { jwtRules: [], policies: [] }), logins } };
}

/**
 * Secrets of sign-ins go to no proxy without a certificate: to it all of them are as if their provider were not known
 * yet.
 */
function loginsOf(
  snapshot: MeshSnapshot,
  gateways: ReadonlySet<string>,
  uncertified: Uncertified | undefined,
): readonly MeshBrowserLogin[] {
  const own = (snapshot.browserLogins ?? []).filter((login) => login.gateways.some((name) => gateways.has(name)));
  return uncertified === undefined ? own : own.map(({ provider: _unused, ...login }) => login);
}

function gatewaysOf(snapshot: MeshSnapshot, { labels }: Pick<Proxy, "labels">): readonly MeshGateway[] {
  return snapshot.gateways.filter((gateway) => selects(gateway.selector, labels));
}

function gatewayKey(gateway: MeshGateway): string {
  return `${gateway.namespace}/${gateway.name}`;
}

function destinationHosts(virtualServices: readonly MeshVirtualService[]): readonly string[] {
  return virtualServices.flatMap(({ http, tls = [], tcp = [] }) =>
    [...http, ...tls, ...tcp].flatMap((route) => (route.route ?? []).map((each) => each.destination.host)),
  );
}

/** Services of the mesh that some AUTO_PASSTHROUGH server has a host for. */
function autoPassthrough(services: readonly MeshService[], gateways: readonly MeshGateway[]): readonly string[] {
  const servers = gateways.flatMap(({ servers: all }) => all).filter((one) => one.tls?.mode === "AUTO_PASSTHROUGH");
  const hosts = servers.flatMap(hostNames);
  const ofMesh = services.filter(({ entry }) => entry?.isExternal !== true);
  return ofMesh.map(({ hostname }) => hostname).filter((name) => hosts.some((host) => hostCovers(host, name)));
}

/** One entry for all plain servers of a port, and one for each that ends TLS. */
function gatewayPorts(
  snapshot: MeshSnapshot,
  group: GatewayGroup,
  gateways: readonly MeshGateway[],
): readonly GatewayPort[] {
  const plain = new Map<number, { targetPort: number; port: number; servers: GatewayPortServer[] }>();
  const secure: GatewayPort[] = [];
  for (const gateway of gateways) {
    for (const server of gateway.servers) {
      const kind = serverKind(server);
      if (kind !== "http" && kind !== "https") continue;
      const { port } = server;
      const targetPort = gatewayTargetPort(snapshot, group, port);
      const entry = portServer(gatewayKey(gateway), server);
      const merged = plain.get(targetPort);
      if (kind === "https") {
        const routeName = httpsRouteName(gateway, server);
        secure.push({ routeName, targetPort, port, servers: [entry] });
      } else if (merged === undefined) plain.set(targetPort, { targetPort, port, servers: [entry] });
      else merged.servers.push(entry);
    }
  }
  return [...plain.values(), ...secure].sort((a, b) => a.targetPort - b.targetPort);
}

function portServer(gateway: string, { hosts, tls }: MeshGatewayServer): GatewayPortServer {
  return { gateway, hosts, ...(tls?.httpsRedirect === true ? { httpsRedirect: true } : {}) };
}

/** Istio: gateway.GatewayRDSRouteName. */
function httpsRouteName(gateway: Pick<MeshGateway, "name" | "namespace">, server: MeshGatewayServer): string {
  return `https.${server.port}.${server.portName ?? ""}.${gateway.name}.${gateway.namespace}`;
}

/**
 * A Gateway speaks of the ports of its workload's Service; a port that no such Service has is the pod's own (as in
 * Istio).
 */
function gatewayTargetPort(snapshot: MeshSnapshot, group: GatewayGroup, port: number): number {
  for (const service of servicesOf(snapshot, group)) {
    const match = service.ports.find((each) => each.number === port);
    if (match === undefined) continue;
    const targetPort = resolveTargetPort(match.targetPort, group.podPorts);
    if (targetPort !== undefined) return targetPort;
  }
  return port;
}
