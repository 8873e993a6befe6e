// Services → clusters: one for each port, one more for each subset, and the two that stand for "nowhere" and
// "anywhere".
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import type { ClientTls, PortProtocol } from "@tulle/config";
import {
  type Cluster,
  Cluster_DiscoveryType,
  Cluster_DnsLookupFamily,
  Cluster_LbPolicy,
  ClusterSchema,
} from "@tulle/xds/envoy/config/cluster/v3/cluster_pb";
import { ClusterConfigSchema } from "@tulle/xds/envoy/extensions/clusters/dynamic_forward_proxy/v3/cluster_pb";
import type { SidecarOwn } from "../scope/proxy-view.ts";
import { circuitBreakers, clusterLimits, commonHttpOptions, defaultConnectTimeoutMs } from "./cluster-limits.ts";
import { adsConfigSource, configReference, durationOfMs, istioMetadata, pack, socketAddress } from "./messages.ts";
import { type PortTrafficPolicy, portTrafficPolicy } from "../scope/port-traffic-policy.ts";
import type { OutboundCluster } from "./outbound-clusters.ts";
import { dnsCacheOf } from "./dns-caches.ts";
import { dnsRefresh, fromAnyAddress } from "./outside-cluster.ts";
import { reachedOf, translateEndpoints } from "./translate-endpoints.ts";
import { http2Options, protocolOptions, type UpstreamProtocol, upstreamProtocol } from "./upstream-protocol.ts";
import { type ClusterContext, type UpstreamTls, upstreamTls } from "./upstream-tls.ts";
import {
  blackHoleCluster,
  connectionClusterName,
  inboundClusterName,
  inboundPassthroughCluster,
  passthroughCluster,
} from "../names/resource-names.ts";

type ClusterInit = MessageInitShape<typeof ClusterSchema> & { $typeName?: never };

export function translateOutboundCluster(cluster: OutboundCluster, context: ClusterContext): Cluster {
  const { name, service, port, subset, reach } = cluster;
  const { rule } = service;
  const policy = portTrafficPolicy(rule, subset, port.number);
  // Without a certificate only some are reached, in the clear, where nobody agrees on a version.
  const protocol = upstreamProtocol(port.protocol, context.type, policy, reach === "all" ? service : {});
  const {
    autoSni = false,
    autoSanValidation = false,
    ...sockets
  } = isByName(cluster, context)
    ? tlsByName(cluster, protocol, context, policy.tls)
    : upstreamTls({ ...cluster, protocol }, context, policy.tls);
  return create(ClusterSchema, {
    name,
    ...clusterLimits(policy),
    lbPolicy: loadBalancer(policy),
    ...discovery(cluster, context, policy.tls),
    typedExtensionProtocolOptions: protocolOptions(protocol, {
      names: { autoSni, autoSanValidation },
      common: commonHttpOptions(policy),
      http2: http2Options(policy),
    }),
    ...sockets,
    metadata: istioMetadata({
      ...(rule === undefined ? {} : { config: configReference("destination-rule", rule.namespace, rule.name) }),
      default_original_port: port.number,
      services: [{ host: service.hostname, name: service.name, namespace: service.namespace }],
      ...(subset === undefined ? {} : { subset: subset.name }),
    }),
  });
}

/** How the proxy comes to know the endpoints. Those of ServiceEntries may be on other machines. */
function discovery(cluster: OutboundCluster, context: ClusterContext, tls?: ClientTls): ClusterInit {
  const { name, service, port } = cluster;
  const { entry } = service;
  const sent: ClusterInit = {
    clusterDiscoveryType: { case: "type", value: Cluster_DiscoveryType.EDS },
    edsClusterConfig: { edsConfig: adsConfigSource(), serviceName: name },
  };
  if (entry === undefined) return sent;
  const { clusterId = "" } = context;
  const bind = { upstreamBindConfig: fromAnyAddress };
  if (isByName(cluster, context)) return { ...byNameOfRequest(context, tls), ...bind };
  if (entry.resolution === "NONE") return { ...whereClientsWant(context), ...bind };
  if (entry.lookedUp === undefined) return { ...sent, ...bind };
  const endpoints = reachedOf(cluster, entry.lookedUp[port.number] ?? []);
  // Envoy wants exactly one endpoint of LOGICAL_DNS; a subset may have none.
  const isLogical = entry.resolution === "DNS_ROUND_ROBIN" && endpoints.length === 1;
  return {
    clusterDiscoveryType: {
      case: "type",
      value: isLogical ? Cluster_DiscoveryType.LOGICAL_DNS : Cluster_DiscoveryType.STRICT_DNS,
    },
    loadAssignment: translateEndpoints({ clusterName: name, clusterId, endpoints }),
    dnsLookupFamily: Cluster_DnsLookupFamily.V4_PREFERRED,
    ...dnsRefresh,
    ...bind,
  };
}

/**
 * Beside the cluster for requests to a port whose protocol is not named, and with the same endpoints: for connections
 * that are passed on as they are.
 */
export function translateConnectionCluster(outbound: OutboundCluster, context: ClusterContext): Cluster {
  const { service, port, subset } = outbound;
  const cluster = translateOutboundCluster({ ...outbound, port: { ...port, protocol: "tcp" } }, context);
  cluster.name = connectionClusterName(service.hostname, port, subset?.name);
  return cluster;
}

/** Endpoints are chosen by least request unless a policy says otherwise (Istio: LoadBalancerSettings.simple). */
function loadBalancer(policy: PortTrafficPolicy): Cluster_LbPolicy {
  switch (policy.loadBalancer?.simple) {
    case "ROUND_ROBIN":
      return Cluster_LbPolicy.ROUND_ROBIN;
    case "RANDOM":
      return Cluster_LbPolicy.RANDOM;
    default:
      return Cluster_LbPolicy.LEAST_REQUEST;
  }
}

/**
 * Shorter than any application's patience with a kept connection (gunicorn's 2 s, the 5 s of Node, uvicorn and Apache),
 * or a request would meet one that the application is just closing: 503, since nobody can tell whether it was taken. A
 * new one costs next to nothing here.
 */
const inboundIdleTimeoutMs = 1_000;

function inboundConnections(protocol: PortProtocol): ReturnType<typeof commonHttpOptions> {
  return protocol === "http" || protocol === "auto" ? { idleTimeout: durationOfMs(inboundIdleTimeoutMs) } : undefined;
}

/** Where the kernel would have led the connection. */
const originalDestination = {
  clusterDiscoveryType: { case: "type", value: Cluster_DiscoveryType.ORIGINAL_DST },
  lbPolicy: Cluster_LbPolicy.CLUSTER_PROVIDED,
} as const satisfies ClusterInit;

const sourceOf = (address: string) => ({ address, portSpecifier: { case: "portValue", value: 0 } }) as const;

/**
 * The pod's own address. The kernel redirects what goes there to the proxy, but for connections from these sources
 * (Istio: InboundPassthroughBindIpv4, InboundPassthroughBindIpv6).
 */
const toOwnDestination: ClusterInit = {
  ...originalDestination,
  upstreamBindConfig: {
    sourceAddress: sourceOf("127.0.0.6"),
    extraSourceAddresses: [{ address: sourceOf("::6") }],
  },
};

/** The workload's own port, at the address where its application listens. */
export function translateInboundCluster(own: SidecarOwn, port: SidecarOwn["inbound"][number]): Cluster {
  const name = inboundClusterName(port.targetPort);
  const { hostname: host, name: service, namespace } = port.service;
  return create(ClusterSchema, {
    name,
    ...(own.captured === undefined ? atAppAddress(own, name, port.targetPort) : toOwnDestination),
    connectTimeout: durationOfMs(defaultConnectTimeoutMs),
    circuitBreakers: circuitBreakers({}),
    typedExtensionProtocolOptions: protocolOptions(upstreamProtocol(port.protocol, "sidecar"), {
      common: inboundConnections(port.protocol),
    }),
    metadata: istioMetadata({ services: [{ host, name: service, namespace }] }),
  });
}

function atAppAddress({ appAddress }: SidecarOwn, clusterName: string, port: number): ClusterInit {
  const address = socketAddress(appAddress, port);
  return {
    clusterDiscoveryType: { case: "type", value: Cluster_DiscoveryType.STATIC },
    loadAssignment: {
      clusterName,
      endpoints: [{ lbEndpoints: [{ hostIdentifier: { case: "endpoint", value: { address } } }] }],
    },
  };
}

/** Ports of the workload that no Service leads to. */
export function translateInboundPassthrough(): Cluster {
  return create(ClusterSchema, { name: inboundPassthroughCluster, ...toOwnDestination, ...anyTraffic() });
}

/** Where clients of a captured workload wanted to go themselves. */
export function translateCapturedPassthrough(): Cluster {
  return create(ClusterSchema, { name: passthroughCluster, ...originalDestination, ...anyTraffic() });
}

function anyTraffic(): ClusterInit {
  return {
    connectTimeout: durationOfMs(defaultConnectTimeoutMs),
    circuitBreakers: circuitBreakers({}),
    typedExtensionProtocolOptions: protocolOptions(upstreamProtocol("auto", "sidecar"), {}),
  };
}

/** Has no endpoint: what is sent here ends in 503. */
export function translateBlackHole(): Cluster {
  return create(ClusterSchema, {
    name: blackHoleCluster,
    clusterDiscoveryType: { case: "type", value: Cluster_DiscoveryType.STATIC },
    connectTimeout: durationOfMs(defaultConnectTimeoutMs),
  });
}

/**
 * Of entries with the resolution NONE: the address that the client meant. Nobody means one at a gateway but the
 * gateway's own (Istio: convertResolution).
 */
function whereClientsWant({ type }: ClusterContext): ClusterInit {
  return type === "sidecar"
    ? originalDestination
    : { clusterDiscoveryType: { case: "type", value: Cluster_DiscoveryType.STATIC } };
}

/**
 * The name in the request, in TLS or in the tunnel that is asked for is looked up. With NONE an explicit proxy does so
 * in the place of an address, of which it knows none.
 */
function isByName({ service }: OutboundCluster, { type, isCaptured = false }: ClusterContext): boolean {
  const resolution = service.entry?.resolution;
  return resolution === "DYNAMIC_DNS" || (resolution === "NONE" && type === "sidecar" && !isCaptured);
}

function byNameOfRequest(context: Pick<ClusterContext, "type" | "isCaptured">, tls?: ClientTls): ClusterInit {
  return {
    clusterDiscoveryType: {
      case: "clusterType",
      value: {
        name: "envoy.clusters.dynamic_forward_proxy",
        typedConfig: pack(ClusterConfigSchema, {
          clusterImplementationSpecifier: { case: "dnsCacheConfig", value: dnsCacheOf(context) },
          allowInsecureClusterOptions: tls?.insecureSkipVerify === true,
        }),
      },
    },
    lbPolicy: Cluster_LbPolicy.CLUSTER_PROVIDED,
  };
}

/** There TLS sends the name in the request and asks for it, whatever else is said (Envoy: LogicalHost). */
function tlsByName(
  cluster: OutboundCluster,
  protocol: UpstreamProtocol,
  context: ClusterContext,
  { sni: _sent, subjectAltNames: _asked, ...tls }: ClientTls = {},
): UpstreamTls {
  const { subjectAltNames: _known, ...entry } = cluster.service.entry!;
  const service = { ...cluster.service, entry };
  return upstreamTls({ ...cluster, service, protocol }, context, tls.mode === undefined ? undefined : tls);
}

/**
 * Hosts outside the mesh, by the name that the client asked for. Istio's ORIGINAL_DST knows no address behind an
 * explicit proxy. The proxy's own connections come from the pod's loopback address, from which nothing outside can be
 * reached, so that this cluster leaves the choice to the kernel.
 */
export function translatePassthrough(): Cluster {
  return create(ClusterSchema, {
    name: passthroughCluster,
    ...byNameOfRequest({ type: "sidecar" }),
    connectTimeout: durationOfMs(defaultConnectTimeoutMs),
    circuitBreakers: circuitBreakers({}),
    upstreamBindConfig: fromAnyAddress,
  });
}
