// Services whose ports are not HTTP, as sidecars reach them without interception: the client asks its proxy for a
// tunnel (CONNECT host:port), which ends there, and the bytes go on to the Service's cluster.
import { create } from "@bufbuild/protobuf";
import { connectionDestinations, isMeantForMesh } from "../scope/connection-destinations.ts";
import type { ConnectionDestination } from "../scope/gateway-view.ts";
import type { TcpRoute, TlsRoute } from "@tulle/config";
import { hostCovers } from "@tulle/config";
import {
  type Route,
  type RouteAction,
  RouteActionSchema,
  RouteSchema,
} from "@tulle/xds/envoy/config/route/v3/route_components_pb";
import type { MeshPort, MeshService, MeshVirtualService } from "../snapshot/mesh-snapshot.ts";
import { refusal } from "./http-routes.ts";
import { noTimeout } from "./messages.ts";
import { connectionClusterName } from "../names/resource-names.ts";

/** The first route of the VirtualService that is meant takes all; without one, tunnels lead to the Service itself. */
export function tunnelRoutes(
  service: MeshService,
  port: MeshPort,
  virtualService: MeshVirtualService | undefined,
  services: ReadonlyMap<string, MeshService>,
  refused: ReadonlySet<string>,
): readonly Route[] {
  const rule = virtualService && routeOf(virtualService, service.hostname, port.number);
  const itself = { cluster: connectionClusterName(service.hostname, port), weight: 1 };
  const targets =
    rule === undefined
      ? [itself]
      : connectionDestinations(rule.route, port.number, (hostname) => services.get(hostname));
  const clusters = targets.map(({ cluster }) => cluster);
  const isRefused = clusters.length > 0 && clusters.every((name) => refused.has(name));
  return [
    create(RouteSchema, {
      name: "default",
      match: { pathSpecifier: { case: "connectMatcher", value: {} } },
      action: isRefused ? refusal(clusters) : { case: "route", value: tunnelTo(targets) },
    }),
  ];
}

function routeOf(
  { tls = [], tcp = [] }: MeshVirtualService,
  hostname: string,
  port: number,
): TcpRoute | TlsRoute | undefined {
  // The server name that a client will send is the host of the tunnel that it asks for.
  const isNamed = (match: TlsRoute["match"][number]): boolean =>
    match.sniHosts.some((host) => hostCovers(host.toLowerCase(), hostname));
  return (
    tls.find((route) => route.match.some((match) => isMeantForMesh(match, port) && isNamed(match))) ??
    tcp.find(({ match = [] }) => match.length === 0 || match.some((each) => isMeantForMesh(each, port)))
  );
}

function tunnelTo(targets: readonly ConnectionDestination[]): RouteAction {
  const clusters = targets.map(({ cluster: name, weight }) => ({ name, weight }));
  return create(RouteActionSchema, {
    clusterSpecifier:
      targets.length === 1
        ? { case: "cluster", value: targets[0]!.cluster }
        : { case: "weightedClusters", value: { clusters } },
    timeout: noTimeout(),
    upgradeConfigs: [{ upgradeType: "CONNECT", connectConfig: {} }],
  });
}
