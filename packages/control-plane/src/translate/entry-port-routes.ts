// Routes of a gateway to hosts that are looked up by the name in the request (DYNAMIC_DNS): the port in that name is
// the one that is called, and clients of a gateway name what they like. Such routes match ports of the entry alone.
import { isHttp } from "@tulle/config";
import type { Route } from "@tulle/xds/envoy/config/route/v3/route_components_pb";
import type { MeshPort, MeshService } from "../snapshot/mesh-snapshot.ts";
import { pseudoHeader } from "./route-match.ts";

/** What a name without a port means to who looks it up: 443 where TLS begins, else 80. */
const standardPorts: ReadonlySet<number> = new Set([80, 443]);

/** The routes, in their order. `services` by host name. */
export function withinEntryPorts(
  routes: readonly Route[],
  services: ReadonlyMap<string, Pick<MeshService, "ports" | "entry">>,
): readonly Route[] {
  for (const route of routes) {
    const ports = portsByName(route, services);
    if (ports !== undefined) route.match!.headers.push(pseudoHeader(":authority", authorityOf(ports), false));
  }
  return routes;
}

/** Those that all of its destinations have; undefined for a route whose hosts do not depend on the request's name. */
function portsByName(
  { action }: Route,
  services: ReadonlyMap<string, Pick<MeshService, "ports" | "entry">>,
): readonly number[] | undefined {
  if (action.case !== "route") return undefined;
  const { clusterSpecifier, requestMirrorPolicies } = action.value;
  const clusters = [
    ...(clusterSpecifier.case === "cluster" ? [clusterSpecifier.value] : []),
    ...(clusterSpecifier.case === "weightedClusters" ? clusterSpecifier.value.clusters.map(({ name }) => name) : []),
    ...requestMirrorPolicies.map(({ cluster }) => cluster),
  ];
  const lists = clusters.flatMap((cluster) => {
    const service = services.get(cluster.split("|")[3] ?? "");
    return service?.entry?.resolution === "DYNAMIC_DNS" ? [httpPorts(service.ports)] : [];
  });
  const [first, ...others] = lists;
  return first?.filter((port) => others.every((list) => list.includes(port)));
}

function httpPorts(ports: readonly MeshPort[]): readonly number[] {
  return ports.flatMap(({ number, protocol }) => (isHttp(protocol) ? [number] : []));
}

function authorityOf(ports: readonly number[]): string {
  // Without any: none that could be called.
  const named = `:(?:${ports.length === 0 ? 0 : ports.join("|")})`;
  return ports.some((port) => standardPorts.has(port)) ? `[^:]+(?:${named})?` : `[^:]+${named}`;
}
