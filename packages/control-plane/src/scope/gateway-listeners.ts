// Gateway servers that take connections (HTTPS, TLS, TCP) → the filter chains of each port, as Istio's gateway builder
// makes them: one for each server that ends TLS, one for each `tls` match where connections pass, one for each Service
// in AUTO_PASSTHROUGH.
import { hostCovers, serverCredentialNames, type TcpRoute, type TlsRoute } from "@tulle/config";
import type { MeshGatewayServer } from "../snapshot/mesh-snapshot.ts";
import type { MeshVirtualService } from "../snapshot/mesh-snapshot.ts";
import { sniName } from "../names/resource-names.ts";
import { connectionDestinations } from "./connection-destinations.ts";
import { sharedHosts } from "./gateway-hosts.ts";
import type {
  ConnectionDestination,
  GatewayChain,
  GatewayChainTls,
  GatewayListener,
  GatewayTcpChain,
} from "./gateway-view.ts";
import type { GatewayClusters, GatewayPort, GatewayRoutes } from "./proxy-view.ts";

/**
 * - `http`, `tcp`: plain.
 * - `https`: HTTP inside TLS that ends here. `tls`: the same with other bytes.
 * - `passthrough`, `auto`: TLS that goes on as it is.
 * - `none`: not carried yet, as its schema says.
 */
export type ServerKind = "http" | "https" | "tls" | "passthrough" | "auto" | "tcp" | "none";

const plainHttp: ReadonlySet<string> = new Set(["HTTP", "HTTP2", "GRPC", "GRPC-WEB"]);

export function serverKind({ protocol, tls }: Pick<MeshGatewayServer, "protocol" | "tls">): ServerKind {
  if (plainHttp.has(protocol)) return "http";
  if (protocol === "TCP") return "tcp";
  if (protocol !== "HTTPS" && protocol !== "TLS") return "none";
  switch (tls?.mode ?? "PASSTHROUGH") {
    case "PASSTHROUGH":
      return "passthrough";
    case "AUTO_PASSTHROUGH":
      return "auto";
    default:
      return protocol === "HTTPS" ? "https" : "tls";
  }
}

/** As it stands in a ClientHello (RFC 6066 section 3): without a dot at its end. Envoy takes no capitals. */
function serverName(host: string): string {
  return host.toLowerCase().replace(/\.$/, "");
}

/** The hosts of a server without the namespaces before them. */
export function hostNames({ hosts }: Pick<MeshGatewayServer, "hosts">): readonly string[] {
  return hosts.map((host) => serverName(host.slice(host.indexOf("/") + 1)));
}

/** What listeners are made of besides their own servers. */
type GatewayPicture = Pick<GatewayRoutes, "ports" | "virtualServices"> &
  Pick<GatewayClusters, "services" | "trustDomain" | "minimumTls" | "withoutCertificate">;

export interface PlacedServer {
  /** `namespace/name` of the Gateway. */
  readonly gateway: string;
  readonly server: MeshGatewayServer;
  readonly targetPort: number;
}

export function gatewayListeners(
  servers: readonly PlacedServer[],
  picture: GatewayPicture,
): readonly GatewayListener[] {
  const byPort = Map.groupBy(servers, ({ targetPort }) => targetPort);
  return [...byPort]
    .map(([targetPort, own]) => ({
      targetPort,
      chains: withoutRepetition(own.flatMap((each) => serverChains(each, picture))),
    }))
    .filter(({ chains }) => chains.length > 0)
    .sort((a, b) => a.targetPort - b.targetPort);
}

/** Of two chains for one name the first stays, so that a Gateway cannot take another's connections. */
function withoutRepetition(chains: readonly GatewayChain[]): readonly GatewayChain[] {
  const taken = new Set<string>();
  return chains.flatMap((chain) => {
    const names = chain.serverNames.length === 0 ? [""] : chain.serverNames;
    const free = names.filter((name) => !taken.has(name));
    for (const name of free) taken.add(name);
    if (free.length === 0) return [];
    return [{ ...chain, serverNames: free.filter((name) => name !== "") }];
  });
}

function serverChains(placed: PlacedServer, picture: GatewayPicture): readonly GatewayChain[] {
  switch (serverKind(placed.server)) {
    case "https":
      return httpsChain(placed, picture);
    case "tls":
      return tcpChain(placed, picture, chainTls(placed.server, picture));
    case "tcp":
      return tcpChain(placed, picture, "none");
    case "passthrough":
      return passthroughChains(placed, picture);
    case "auto":
      return autoPassthroughChains(placed.server, picture);
    default:
      return [];
  }
}

/**
 * Undefined where the certificate is one that this gateway has not: its own, of the mesh, or a Secret's that it is not
 * sent.
 */
function chainTls(
  { tls }: MeshGatewayServer,
  { trustDomain, minimumTls, withoutCertificate }: GatewayPicture,
): GatewayChainTls | undefined {
  const { mode, httpsRedirect: _redirect, ...settings } = tls ?? {};
  switch (mode) {
    case "SIMPLE":
    case "MUTUAL":
    case "OPTIONAL_MUTUAL":
      if (withoutCertificate === true && serverCredentialNames(settings).length > 0) return undefined;
      return { ...settings, mode };
    case "ISTIO_MUTUAL":
      if (trustDomain === undefined || withoutCertificate === true) return undefined;
      return { ...settings, mode, trustDomain, ...(minimumTls === undefined ? {} : { minimumTls }) };
    default:
      return undefined;
  }
}

/** Names for a filter chain match; `*` stands for any, which a match says by naming none. */
function serverNames(hosts: readonly string[]): readonly string[] {
  return hosts.includes("*") ? [] : [...new Set(hosts)];
}

function httpsChain({ gateway, server, targetPort }: PlacedServer, picture: GatewayPicture): readonly GatewayChain[] {
  const tls = chainTls(server, picture);
  const belongs = (port: GatewayPort): boolean =>
    port.targetPort === targetPort && port.routeName?.startsWith(`https.${server.port}.${server.portName}.`) === true;
  const routeName = picture.ports.find((port) => belongs(port) && port.servers[0]?.gateway === gateway)?.routeName;
  if (tls === undefined || routeName === undefined) return [];
  return [{ type: "http", name: routeName, serverNames: serverNames(hostNames(server)), routeName, tls }];
}

/** Connections whose bytes are nobody's business: the first route of the first VirtualService takes them. */
function tcpChain(
  placed: PlacedServer,
  picture: GatewayPicture,
  tls: GatewayChainTls | "none" | undefined,
): readonly GatewayTcpChain[] {
  if (tls === undefined) return [];
  const { server } = placed;
  for (const virtualService of boundTo(placed, picture)) {
    for (const route of virtualService.tcp ?? []) {
      const matches = route.match ?? [];
      if (matches.length > 0 && !matches.some((match) => isMeant(match, placed))) continue;
      const names = tls === "none" ? [] : serverNames(hostNames(server));
      const name = `tcp.${server.port}.${placed.gateway}`;
      return [
        {
          type: "tcp",
          name: names.length === 0 ? name : `${name}.${names[0]}`,
          serverNames: names,
          ...(tls === "none" ? {} : { tls }),
          destinations: destinationsOf(route, server.port, picture),
        },
      ];
    }
  }
  return [];
}

function passthroughChains(placed: PlacedServer, picture: GatewayPicture): readonly GatewayTcpChain[] {
  return boundTo(placed, picture).flatMap((virtualService) =>
    (virtualService.tls ?? []).flatMap((route) =>
      route.match
        .filter((match) => isMeant(match, placed))
        .map(({ sniHosts }): GatewayTcpChain => {
          const names = serverNames(sniHosts.map(serverName));
          return {
            type: "tcp",
            name: `tls.${placed.server.port}.${names[0] ?? "*"}`,
            serverNames: names,
            destinations: destinationsOf(route, placed.server.port, picture),
          };
        }),
    ),
  );
}

/**
 * Proxies of another mesh say by their server name which port and subset they want, and do TLS with the workload
 * itself: nothing here can read or change what passes (Istio: builtAutoPassthroughFilterChains).
 */
function autoPassthroughChains(server: MeshGatewayServer, picture: GatewayPicture): readonly GatewayTcpChain[] {
  const hosts = hostNames(server);
  return picture.services
    .filter(({ hostname }) => hosts.some((host) => hostCovers(host, hostname)))
    .flatMap(({ hostname, ports, rule }) =>
      ports
        .filter(({ protocol }) => protocol !== "udp")
        .flatMap(({ number }) =>
          [undefined, ...(rule?.subsets ?? [])].map((subset) => sniName(hostname, number, subset?.name)),
        )
        .map((name): GatewayTcpChain => {
          return {
            type: "tcp",
            name,
            serverNames: [name],
            isAutoPassthrough: true,
            destinations: [{ cluster: name, weight: 1 }],
          };
        }),
    );
}

function boundTo(
  { gateway, server }: PlacedServer,
  { virtualServices }: GatewayPicture,
): readonly MeshVirtualService[] {
  return virtualServices.filter((each) => sharedHosts({ gateway, hosts: server.hosts }, each).length > 0);
}

export type Layer4Match = NonNullable<TcpRoute["match"]>[number] | TlsRoute["match"][number];

function isMeant(match: Layer4Match, { gateway, server }: PlacedServer): boolean {
  const { gateways = [], port } = match;
  return (gateways.length === 0 || gateways.includes(gateway)) && (port === undefined || port === server.port);
}

function destinationsOf(
  { route }: Pick<TcpRoute, "route">,
  port: number,
  { services }: GatewayPicture,
): readonly ConnectionDestination[] {
  return connectionDestinations(route, port, (host) => services.find(({ hostname }) => hostname === host));
}
