// The stage `translate`: a section of a view → xDS resources, encoded. Pure functions that see nothing but their
// section; their results are kept by its key, so that proxies with equal views share one encoding.
import { create } from "@bufbuild/protobuf";
import { redactionMetadata } from "@tulle/telemetry";
import { type EncodedResource, encodeResource } from "@tulle/xds";
import { type Cluster, ClusterSchema } from "@tulle/xds/envoy/config/cluster/v3/cluster_pb";
import { type Listener, ListenerSchema } from "@tulle/xds/envoy/config/listener/v3/listener_pb";
import { MetadataSchema } from "@tulle/xds/envoy/config/core/v3/base_pb";
import type { RouteConfiguration } from "@tulle/xds/envoy/config/route/v3/route_pb";
import type {
  ClustersSection,
  OwnSection,
  RoutesSection,
  SidecarClusters,
  SidecarRoutes,
} from "../scope/proxy-view.ts";
import {
  translateBlackHole,
  translateCapturedPassthrough,
  translateConnectionCluster,
  translateInboundCluster,
  translateInboundPassthrough,
  translateOutboundCluster,
  translatePassthrough,
} from "./translate-clusters.ts";
import { capturedPorts, httpProxyPort } from "../names/resource-names.ts";
import { encodeRoutes } from "./route-revisions.ts";
import { type OutboundCluster, outboundClusters, passedClusters } from "./outbound-clusters.ts";
import { translateGatewayRoutes } from "./translate-gateway-routes.ts";
import { translateGatewayListeners } from "./translate-gateway-listeners.ts";
import { translateInboundListener, translateOutboundListener } from "./translate-listeners.ts";
import { providerCluster } from "./provider-services.ts";
import { tokenClusters } from "./token-clusters.ts";
import { translatePodClusters } from "./pod-clusters.ts";
import { translateSniCluster } from "./sni-clusters.ts";
import { translateCapturedListeners } from "./captured-listeners.ts";
import { translateCapturedRoutes, translateSidecarRoutes } from "./translate-sidecar-routes.ts";

export type ResourceMap = ReadonlyMap<string, EncodedResource>;

/** What Services become. Endpoints follow `outbound` on their own. */
export interface SharedClusters {
  readonly clusters: readonly EncodedResource[];
  readonly outbound: readonly OutboundCluster[];
}

export interface OwnResources {
  readonly clusters: readonly EncodedResource[];
  readonly listeners: readonly EncodedResource[];
}

/** `clusterId`: of the control plane, for what callers say of hosts that they look up. */
export function translateClusters(section: ClustersSection, clusterId: string): SharedClusters {
  const { type, trustDomain, minimumTls, withoutCertificate = false } = section;
  const outbound = outboundClusters(section);
  const passed = type === "router" ? passedClusters(section) : [];
  const fixed = type === "sidecar" ? [translateBlackHole(), passthrough(section)] : [translateBlackHole()];
  const isCaptured = section.type === "sidecar" && section.isCaptured === true;
  const context = { type, trustDomain, minimumTls, withoutCertificate, isCaptured, clusterId };
  const detected = outbound.filter(({ port }) => port.protocol === "auto");
  const clusters = [
    ...outbound.map((cluster) => translateOutboundCluster(cluster, context)),
    ...detected.map((cluster) => translateConnectionCluster(cluster, context)),
    ...(isCaptured ? translatePodClusters(outbound, context) : []),
    ...fixed,
  ];
  if (type === "router") {
    clusters.push(...passed.map(translateSniCluster));
    clusters.push(...tokenClusters(section.tokenProviders ?? []));
  }
  return { outbound: [...outbound, ...passed], clusters: clusters.map((each) => encodeResource(ClusterSchema, each)) };
}

function passthrough({ isCaptured }: SidecarClusters): Cluster {
  return isCaptured === true ? translateCapturedPassthrough() : translatePassthrough();
}

export function translateRoutes(section: RoutesSection): readonly EncodedResource[] {
  const routes =
    section.type === "sidecar"
      ? sidecarRoutes(section)
      : section.ports.map((port) => translateGatewayRoutes(section, port));
  return routes.map(encodeRoutes);
}

function sidecarRoutes(section: SidecarRoutes): readonly RouteConfiguration[] {
  const { captured } = section;
  return captured === undefined ? [translateSidecarRoutes(section)] : translateCapturedRoutes(section, captured);
}

export function translateOwn(section: OwnSection): OwnResources {
  if (section.type === "router") {
    const listeners = translateGatewayListeners(section);
    return {
      clusters: providerClusters(section),
      listeners: listeners.map((each) => encodeListener(section, each)),
    };
  }
  const { captured } = section;
  // The workload's port of that number is the proxy's own: its Service leads to the proxy, and no further.
  const proxyPort = captured === undefined ? httpProxyPort : capturedPorts.inbound;
  const inbound = section.inbound.filter((port) => port.protocol !== "udp" && port.targetPort !== proxyPort);
  const listeners =
    captured === undefined
      ? [translateOutboundListener(section), ...inbound.map((port) => translateInboundListener(section, port))]
      : translateCapturedListeners({ ...section, inbound, captured });
  return {
    clusters: [
      ...inbound.map((port) => encodeResource(ClusterSchema, translateInboundCluster(section, port))),
      ...(captured === undefined ? [] : [encodeResource(ClusterSchema, translateInboundPassthrough())]),
      ...providerClusters(section),
    ],
    listeners: listeners.map((each) => encodeListener(section, each)),
  };
}

/** With the parameters that the mesh itself redacts, for Tulle's proxy (`redactionMetadata`). */
function encodeListener({ redactedParameters }: OwnSection, listener: Listener): EncodedResource {
  if (redactedParameters === undefined) return encodeResource(ListenerSchema, listener);
  const { key, field } = redactionMetadata;
  const filterMetadata = { ...listener.metadata?.filterMetadata, [key]: { [field]: [...redactedParameters] } };
  return encodeResource(ListenerSchema, { ...listener, metadata: create(MetadataSchema, { filterMetadata }) });
}

/** Of hosts outside the mesh that traces and logs go to. */
function providerClusters({ telemetry }: OwnSection): readonly EncodedResource[] {
  return (telemetry?.outside ?? []).map((target) => encodeResource(ClusterSchema, providerCluster(target)));
}

export function byName(resources: readonly EncodedResource[]): ResourceMap {
  return new Map(resources.map((resource) => [resource.name, resource]));
}
