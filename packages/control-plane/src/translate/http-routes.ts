// A VirtualService → the ordered routes of one virtual host, as Istio's BuildHTTPRoutesForVirtualService makes them.
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import {
  type HttpMatch,
  type HttpRoute,
  parseDuration,
  type PortProtocol,
  type WeightedDestination,
} from "@tulle/config";
import {
  type Route,
  RouteSchema,
  type RouteAction,
  RouteActionSchema,
} from "@tulle/xds/envoy/config/route/v3/route_components_pb";
import type { MeshService, MeshVirtualService } from "../snapshot/mesh-snapshot.ts";
import { configReference, durationOfMs, istioMetadata, noTimeout } from "./messages.ts";
import { corsFilterName, corsPolicy } from "./cors-policy.ts";
import { outboundClusterName, podRequestsClusterName } from "../names/resource-names.ts";
import { retryBeforeRequest, retryPolicy } from "./retry-policy.ts";
import { isCatchAll, routeMatch } from "./route-match.ts";

const notImplementedBody = { case: "inlineString", value: "this route's action is not implemented yet\n" } as const;

export interface RouteContext {
  readonly services: ReadonlyMap<string, MeshService>;
  /**
   * Port of the virtual host: what a condition on the port means, and where a destination with several ports names
   * none.
   */
  readonly port: number;
  /** Those that requests to the virtual host come through; `mesh` for sidecars. */
  readonly gateways: readonly string[];
  /** See `SidecarRoutes.refusedClusters`. */
  readonly refused: ReadonlySet<string>;
}

type RouteActionInit = NonNullable<MessageInitShape<typeof RouteSchema>["action"]>;

export function virtualServiceRoutes(virtualService: MeshVirtualService, context: RouteContext): readonly Route[] {
  const routes: Route[] = [];
  for (const rule of virtualService.http) {
    const matches = rule.match === undefined || rule.match.length === 0 ? [undefined] : rule.match;
    for (const match of matches) {
      if (match !== undefined && !isMeant(match, context)) continue;
      const route = create(RouteSchema, {
        name: routeName(rule, match),
        match: routeMatch(match),
        action: routeAction(rule, context),
        metadata: istioMetadata({
          config: configReference("virtual-service", virtualService.namespace, virtualService.name),
        }),
        decorator: { operation: operation(rule, context) },
        ...(rule.corsPolicy === undefined
          ? {}
          : { typedPerFilterConfig: { [corsFilterName]: corsPolicy(rule.corsPolicy) } }),
      });
      routes.push(route);
      if (isCatchAll(route.match!)) return routes;
    }
  }
  return routes;
}

/** Whether the match is for this port and for one of these gateways. */
function isMeant({ port, gateways = [] }: HttpMatch, context: RouteContext): boolean {
  if (port !== undefined && port !== context.port) return false;
  return gateways.length === 0 || gateways.some((gateway) => context.gateways.includes(gateway));
}

/** The name that access logs show (Istio: HTTPRoute.name, "concatenated with the match's name"). */
function routeName({ name = "" }: HttpRoute, match: HttpMatch | undefined): string {
  return match?.name === undefined || match.name === "" ? name : `${name}.${match.name}`;
}

/** All requests to the Service, as they are without a VirtualService (Istio: BuildDefaultHTTPOutboundRoute). */
export function defaultRoute(service: MeshService, port: number, refused: ReadonlySet<string>): Route {
  const cluster = outboundClusterName(service.hostname, port);
  return routeTo(cluster, service, port, refused);
}

/** To the pod of the Service that the client has dialled. */
export function podRoute(service: MeshService, port: number, refused: ReadonlySet<string>): Route {
  const cluster = podRequestsClusterName(outboundClusterName(service.hostname, port));
  return routeTo(cluster, service, port, refused);
}

function routeTo(cluster: string, service: MeshService, port: number, refused: ReadonlySet<string>): Route {
  const ofService = outboundClusterName(service.hostname, port);
  return create(RouteSchema, {
    name: "default",
    match: routeMatch(undefined),
    action: refused.has(ofService)
      ? refusal([ofService])
      : { case: "route", value: forward({ case: "cluster", value: cluster }, {}) },
    decorator: { operation: `${service.hostname}:${port}/*` },
  });
}

/** What is said in the place of sending in the clear what the server wants encrypted. */
export function refusal(clusters: readonly string[]): RouteActionInit {
  const servers = [...new Set(clusters)].map((name) => {
    const [, port, subset, host] = name.split("|");
    return `${host}:${port}${subset === "" ? "" : ` (subset ${subset})`}`;
  });
  const asks = `${servers.join(" and ")} ${servers.length === 1 ? "asks" : "ask"} for mutual TLS`;
  const specifier = {
    case: "inlineString",
    value: `${asks}, and this proxy has no certificate of the mesh\n`,
  } as const;
  return { case: "directResponse", value: { status: 503, body: { specifier } } };
}

/** Where what comes to a workload goes on to, and by which Service it is known: by none, empty and 0. */
export interface InboundTarget {
  readonly cluster: string;
  readonly hostname: string;
  readonly servicePort: number;
  readonly protocol: PortProtocol;
}

/** Requests to a workload's own port. There is one application to ask: only what has not reached it is tried again. */
export function inboundRoute({ cluster, hostname, servicePort, protocol }: InboundTarget): Route {
  return create(RouteSchema, {
    name: "default",
    match: routeMatch(undefined),
    action: {
      case: "route",
      value: {
        clusterSpecifier: { case: "cluster", value: cluster },
        // Not for gRPC, whose clients do so themselves.
        ...(protocol === "grpc" || protocol === "grpc-web" ? {} : { retryPolicy: retryBeforeRequest }),
        timeout: noTimeout(),
        maxStreamDuration: { maxStreamDuration: noTimeout(), grpcTimeoutHeaderMax: noTimeout() },
      },
    },
    decorator: { operation: `${hostname}:${servicePort}/*` },
  });
}

/** Catch-all routes go behind the others and otherwise the order stays, so that VirtualServices can share a host. */
export function catchAllLast(routes: readonly Route[]): Route[] {
  return [
    ...routes.filter((route) => !isCatchAll(route.match!)),
    ...routes.filter((route) => isCatchAll(route.match!)),
  ];
}

/** A rule whose action no proxy carries yet answers 501: later rules were not written for its requests. */
function routeAction(rule: HttpRoute, context: RouteContext): RouteActionInit {
  const destinations = rule.route ?? [];
  if (destinations.length === 0) {
    return { case: "directResponse", value: { status: 501, body: { specifier: notImplementedBody } } };
  }
  const clusters = destinations.map((each) => ({ name: destinationCluster(each, context), weight: each.weight ?? 0 }));
  const weighted = clusters.filter((cluster) => cluster.weight > 0);
  const names = (clusters.length === 1 ? clusters : weighted).map(({ name }) => name);
  if (names.length > 0 && names.every((name) => context.refused.has(name))) return refusal(names);
  if (clusters.length === 1 || weighted.length === 1) {
    const { name } = clusters.length === 1 ? clusters[0]! : weighted[0]!;
    return { case: "route", value: forward({ case: "cluster", value: name }, rule) };
  }
  return { case: "route", value: forward({ case: "weightedClusters", value: { clusters: weighted } }, rule) };
}

/** No time limit unless the rule sets one (Istio: no default route timeout). */
function forward(
  clusterSpecifier: NonNullable<MessageInitShape<typeof RouteActionSchema>["clusterSpecifier"]>,
  rule: Pick<HttpRoute, "timeout" | "retries">,
): RouteAction {
  const timeoutMs = (rule.timeout === undefined ? undefined : parseDuration(rule.timeout)) ?? 0;
  const retries = retryPolicy(rule.retries);
  return create(RouteActionSchema, {
    clusterSpecifier,
    timeout: durationOfMs(timeoutMs),
    // Deprecated, and what Istio sends: with max_stream_duration in its place Envoy would no longer look at `timeout`.
    maxGrpcTimeout: durationOfMs(timeoutMs),
    ...(retries === undefined ? {} : { retryPolicy: retries }),
  });
}

/**
 * A destination without a port takes its Service's only one, else that of the virtual host (Istio:
 * GetDestinationCluster).
 */
function destinationPort({ destination }: WeightedDestination, { services, port }: RouteContext): number {
  if (destination.port !== undefined) return destination.port.number;
  const ports = services.get(destination.host)?.ports ?? [];
  return ports.length === 1 ? ports[0]!.number : port;
}

function destinationCluster(each: WeightedDestination, context: RouteContext): string {
  return outboundClusterName(each.destination.host, destinationPort(each, context), each.destination.subset);
}

function operation(rule: HttpRoute, context: RouteContext): string {
  const first = rule.route?.[0];
  return first === undefined ? "*" : `${first.destination.host}:${destinationPort(first, context)}/*`;
}
