// The stage `translate`: ProxyView → xDS resources, encoded. Pure functions with no other input; their results are kept by
// section key, so that proxies with equal views share one encoding.
import { type EncodedResource, encodeResource } from "@tulle/xds";
import { ClusterSchema } from "@tulle/xds/envoy/config/cluster/v3/cluster_pb";
import { ClusterLoadAssignmentSchema } from "@tulle/xds/envoy/config/endpoint/v3/endpoint_pb";
import { ListenerSchema } from "@tulle/xds/envoy/config/listener/v3/listener_pb";
import { RouteConfigurationSchema } from "@tulle/xds/envoy/config/route/v3/route_pb";
import type { GatewayOwn, GatewayShared, ProxyView, SidecarOwn, SidecarShared } from "../scope/proxy-view.ts";
import type { EndpointSnapshot } from "../snapshot/mesh-snapshot.ts";
import { endpointsOf, translateEndpoints } from "./translate-endpoints.ts";
import {
  type OutboundCluster,
  outboundClusters,
  translateBlackHole,
  translateInboundCluster,
  translateOutboundCluster,
  translatePassthrough,
} from "./translate-clusters.ts";
import { httpProxyPort } from "./names.ts";
import { translateGatewayRoutes } from "./translate-gateway-routes.ts";
import { translateGatewayListeners } from "./translate-gateway-listeners.ts";
import { translateInboundListener, translateOutboundListener } from "./translate-listeners.ts";
import { tokenClusters } from "./token-clusters.ts";
import { translateSniCluster } from "./sni-clusters.ts";
import { translateSidecarRoutes } from "./translate-sidecar-routes.ts";

export type SharedSection = SidecarShared | GatewayShared;
export type ResourceMap = ReadonlyMap<string, EncodedResource>;

/** What the Services of a shared section become. Endpoints follow `outbound` on their own. */
export interface SharedClusters {
  readonly clusters: readonly EncodedResource[];
  readonly outbound: readonly OutboundCluster[];
}

export interface OwnResources {
  readonly clusters: readonly EncodedResource[];
  readonly listeners: readonly EncodedResource[];
}

export function translateSharedClusters(view: SharedSection): SharedClusters {
  const { type, trustDomain, minimumTls, services } = view;
  const outbound = outboundClusters(services);
  const fixed = type === "sidecar" ? [translateBlackHole(), translatePassthrough()] : [translateBlackHole()];
  const clusters = [
    ...outbound.map((cluster) => translateOutboundCluster(cluster, { type, trustDomain, minimumTls })),
    ...fixed,
  ];
  const passed = new Set(view.type === "router" ? view.autoPassthrough : []);
  clusters.push(...outbound.filter(({ service }) => passed.has(service.hostname)).map(translateSniCluster));
  if (view.type === "router") clusters.push(...tokenClusters(view.logins ?? []));
  return { outbound, clusters: clusters.map((each) => encodeResource(ClusterSchema, each)) };
}

export function translateSharedRoutes(view: SharedSection): readonly EncodedResource[] {
  const routes =
    view.type === "sidecar"
      ? [translateSidecarRoutes(view)]
      : view.ports.map((port) => translateGatewayRoutes(view, port));
  return routes.map((each) => encodeResource(RouteConfigurationSchema, each));
}

export function translateOwn(view: SidecarOwn | GatewayOwn): OwnResources {
  if (view.type === "router") {
    const listeners = translateGatewayListeners(view);
    return { clusters: [], listeners: listeners.map((each) => encodeResource(ListenerSchema, each)) };
  }
  // The workload's port of that number is the proxy's own: its Service leads to the proxy, which answers 404.
  const inbound = view.inbound.filter((port) => port.protocol !== "udp" && port.targetPort !== httpProxyPort);
  const listeners = [translateOutboundListener(view), ...inbound.map((port) => translateInboundListener(view, port))];
  return {
    clusters: inbound.map((port) => encodeResource(ClusterSchema, translateInboundCluster(view, port))),
    listeners: listeners.map((each) => encodeResource(ListenerSchema, each)),
  };
}

/** Everything that one proxy gets, by type. */
export interface ProxyResources {
  readonly CDS: ResourceMap;
  readonly EDS: ResourceMap;
  readonly LDS: ResourceMap;
  readonly RDS: ResourceMap;
}

/** The whole stage at once, for one proxy; the server takes the sections one by one, to share them. */
export function translate(view: ProxyView, endpoints: EndpointSnapshot, clusterId: string): ProxyResources {
  const shared = translateSharedClusters(view.shared.value);
  const own = translateOwn(view.own.value);
  const assignments = shared.outbound.map((cluster) =>
    encodeResource(
      ClusterLoadAssignmentSchema,
      translateEndpoints(cluster.name, endpointsOf(cluster, endpoints), clusterId),
    ),
  );
  return {
    CDS: byName([...shared.clusters, ...own.clusters]),
    EDS: byName(assignments),
    LDS: byName(own.listeners),
    RDS: byName(translateSharedRoutes(view.shared.value)),
  };
}

export function byName(resources: readonly EncodedResource[]): ResourceMap {
  return new Map(resources.map((resource) => [resource.name, resource]));
}
