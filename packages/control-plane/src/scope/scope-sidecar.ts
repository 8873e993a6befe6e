// (snapshot, sidecar) → view: every Service of the mesh with its rules, and the workload's own ports.
import { selects } from "@tulle/config";
import { modeOfPort, mutualTlsModes } from "@tulle/config";
import type { EndpointSnapshot, MeshDestinationRule, MeshService, MeshSnapshot } from "../snapshot/mesh-snapshot.ts";
import type { MeshVirtualService } from "../snapshot/mesh-snapshot.ts";
import { type Client, seenBy } from "./client.ts";
import { anyAddresses, capturedOutbound } from "./captured-sidecar.ts";
import { podConnections } from "./captured-pods.ts";
import { capturedPorts } from "../names/resource-names.ts";
import { effectiveRule } from "./effective-rule.ts";
import { Keyed } from "./keyed.ts";
import type { PodPort, Proxy } from "./proxy.ts";
import type {
  CapturedOutbound,
  CapturedSidecar,
  InboundPort,
  ScopedService,
  SidecarClusters,
  SidecarOwn,
  SidecarRoutes,
} from "./proxy-view.ts";
import { refusedClusters, type Uncertified } from "./uncertified.ts";
import { workloadTelemetry } from "./workload-telemetry.ts";
import { workloadSecurity } from "./workload-security.ts";

/** All that decides what sidecars have in common. */
export interface SidecarGroup extends Client {
  readonly uncertified?: Uncertified;
  /** Missing where it decides nothing. */
  readonly network?: string;
  /** Likewise. */
  readonly locality?: string;
  /** Missing in interceptionMode NONE. */
  readonly isCaptured?: true;
}

export interface SidecarShared {
  readonly clusters: Keyed<SidecarClusters>;
  readonly routes: Keyed<SidecarRoutes>;
}

/** The same for all sidecars that are equal as clients. */
export function sidecarShared(snapshot: MeshSnapshot, group: SidecarGroup): SidecarShared {
  const { services, virtualServices, destinationRules } = seenBy(snapshot, group);
  const { namespace, uncertified, network, locality, isCaptured } = group;
  const scoped = services.map((service) => scopedService(destinationRules, service, namespace));
  const routes: SidecarRoutes = {
    type: "sidecar",
    namespace,
    services,
    virtualServices: meshVirtualServices(virtualServices),
    ...(snapshot.registryOnly === undefined ? {} : { registryOnly: snapshot.registryOnly }),
    ...(snapshot.trustDomain === undefined ? {} : refusedClusters(scoped, uncertified)),
  };
  return {
    clusters: Keyed.of<SidecarClusters>({
      type: "sidecar",
      ...(isCaptured === undefined ? {} : { isCaptured }),
      ...workloadTls(snapshot, uncertified),
      ...foreignNetworks(snapshot, network),
      ...(locality === undefined ? {} : { locality }),
      services: scoped,
    }),
    routes: Keyed.of<SidecarRoutes>({
      ...routes,
      ...(isCaptured === undefined ? {} : { captured: capturedOutbound(routes) }),
    }),
  };
}

/** What all TLS between workloads has in common. */
export function workloadTls(
  { trustDomain, minimumTls }: MeshSnapshot,
  uncertified: Uncertified | undefined,
): Pick<SidecarClusters, "trustDomain" | "minimumTls" | "withoutCertificate"> {
  const certificate = uncertified === undefined ? {} : { withoutCertificate: true as const };
  if (trustDomain === undefined) return certificate;
  return { trustDomain, ...(minimumTls === undefined ? {} : { minimumTls }), ...certificate };
}

/** `network`: the proxy's. */
export function foreignNetworks(
  { networkGateways: gateways }: MeshSnapshot,
  network: string | undefined,
): Pick<SidecarClusters, "networks"> {
  return gateways === undefined || network === undefined ? {} : { networks: { own: network, gateways } };
}

/** What paths become before anything looks at them, and what of them is logged. */
export function pathsOf({
  pathNormalization,
  redactedParameters,
}: MeshSnapshot): Pick<MeshSnapshot, "pathNormalization" | "redactedParameters"> {
  return {
    ...(pathNormalization === undefined ? {} : { pathNormalization }),
    ...(redactedParameters === undefined ? {} : { redactedParameters }),
  };
}

export function scopedService(
  rules: readonly MeshDestinationRule[],
  service: MeshService,
  namespace: string,
): ScopedService {
  const rule = effectiveRule(rules, service, namespace);
  return rule === undefined ? service : { ...service, rule };
}

/**
 * Two VirtualServices for the same host in the mesh cannot both be right: the earlier one has it (Istio does the same),
 * and analysis tells the owner of the later one (IST0109).
 */
function meshVirtualServices(all: readonly MeshVirtualService[]): readonly MeshVirtualService[] {
  const taken = new Set<string>();
  return all
    .filter((virtualService) => virtualService.gateways.includes("mesh"))
    .map((virtualService) => {
      const hosts = virtualService.hosts.filter((host) => !taken.has(host));
      for (const host of hosts) taken.add(host);
      return { ...virtualService, hosts };
    })
    .filter((virtualService) => virtualService.hosts.length > 0);
}

export function sidecarOwn(
  snapshot: MeshSnapshot,
  shared: SidecarShared,
  proxy: Proxy,
  endpoints: EndpointSnapshot,
): SidecarOwn {
  const { protocolDetectionTimeoutMs } = snapshot;
  const { captured } = shared.routes.value;
  return {
    type: "sidecar",
    address: proxy.address,
    appAddress: proxy.appAddress,
    interceptionMode: proxy.interceptionMode,
    inbound: inboundPorts(snapshot, proxy),
    ...(captured === undefined
      ? {}
      : {
          captured: {
            ...capturedSidecar(snapshot, captured, proxy),
            ...podsOf(captured, shared.clusters.value, proxy, endpoints),
          },
        }),
    ...(protocolDetectionTimeoutMs === undefined ? {} : { protocolDetectionTimeoutMs }),
    ...pathsOf(snapshot),
    ...workloadTelemetry(snapshot, proxy, reachableIn(shared.clusters.value)),
    ...workloadSecurity(snapshot, proxy),
  };
}

/** Whether a view has clusters of a Service. */
export function reachableIn({ services }: Pick<SidecarClusters, "services">): (hostname: string) => boolean {
  return (hostname) => services.some((service) => service.hostname === hostname);
}

function podsOf(
  { pods }: CapturedOutbound,
  clusters: SidecarClusters,
  proxy: Proxy,
  endpoints: EndpointSnapshot,
): Pick<CapturedSidecar, "podConnections"> {
  const connections = pods === undefined ? [] : podConnections(pods, clusters, proxy, endpoints);
  return connections.length === 0 ? {} : { podConnections: connections };
}

function capturedSidecar(snapshot: MeshSnapshot, outbound: CapturedOutbound, proxy: Proxy): CapturedSidecar {
  const tlsOfPort = mutualTlsOfPorts(snapshot, proxy);
  const { peerAuthentications = [] } = snapshot;
  const named = new Set(targetPorts(snapshot, proxy).keys());
  const spoken = new Set(Object.keys(mutualTlsModes(peerAuthentications, proxy).ports).map(Number));
  const ports = [undefined, ...spoken.difference(named)].filter(isNotProxys).map((port) => ({
    port,
    tls: tlsOfPort(port),
  }));
  return {
    anyAddresses: anyAddresses(proxy),
    outbound,
    otherPorts: ports.flatMap(({ port, tls }) =>
      tls === "refused" ? [] : [{ ...(port === undefined ? {} : { port }), ...tls }],
    ),
    refusedPorts: [...named.union(spoken)].filter(isNotProxys).filter((port) => tlsOfPort(port) === "refused"),
  };
}

/** Nobody is let in at the proxy's own port, whatever is said of it. */
function isNotProxys(port: number | undefined): boolean {
  return port !== capturedPorts.inbound;
}

/** One entry a target port: where several Services lead to it, the first one names it. */
function targetPorts(snapshot: MeshSnapshot, proxy: Proxy): ReadonlyMap<number, Omit<InboundPort, "mutualTls">> {
  const byTargetPort = new Map<number, Omit<InboundPort, "mutualTls">>();
  for (const service of servicesOf(snapshot, proxy)) {
    for (const { name: portName, number: servicePort, targetPort: wanted, protocol } of service.ports) {
      const targetPort =
        proxy.portsByName === undefined
          ? resolveTargetPort(wanted, proxy.podPorts)
          : machinePort(proxy.portsByName, portName, wanted, servicePort);
      if (targetPort === undefined || byTargetPort.has(targetPort)) continue;
      const { name, namespace, hostname } = service;
      byTargetPort.set(targetPort, { targetPort, protocol, servicePort, service: { name, namespace, hostname } });
    }
  }
  return byTargetPort;
}

function inboundPorts(snapshot: MeshSnapshot, proxy: Proxy): readonly InboundPort[] {
  const mutualTls = mutualTlsOfPorts(snapshot, proxy);
  return [...targetPorts(snapshot, proxy).values()]
    .flatMap((port) => {
      const tls = mutualTls(port.targetPort);
      return tls === "refused" ? [] : [{ ...port, ...tls }];
    })
    .sort((a, b) => a.targetPort - b.targetPort);
}

type TlsOfPort = Pick<InboundPort, "mutualTls"> | "refused";

/**
 * Without a certificate a port under STRICT has no listener: nothing else would turn everybody away as surely. Of all
 * ports of which no policy speaks: `undefined`.
 */
function mutualTlsOfPorts(snapshot: MeshSnapshot, proxy: Proxy): (port: number | undefined) => TlsOfPort {
  const { trustDomain, minimumTls, peerAuthentications = [] } = snapshot;
  if (trustDomain === undefined) return () => ({});
  const modes = mutualTlsModes(peerAuthentications, proxy);
  return (port) => {
    const mode = port === undefined ? modes.mode : modeOfPort(modes, port);
    if (proxy.withoutCertificate === true) return mode === "STRICT" ? "refused" : {};
    return mode === "DISABLE"
      ? {}
      : { mutualTls: { mode, trustDomain, ...(minimumTls === undefined ? {} : { minimumTls }) } };
  };
}

/** The Services that select this workload. */
export function servicesOf(snapshot: MeshSnapshot, proxy: Pick<Proxy, "namespace" | "labels">): readonly MeshService[] {
  return snapshot.services.filter(
    (service) =>
      service.namespace === proxy.namespace &&
      Object.keys(service.selector).length > 0 &&
      selects(service.selector, proxy.labels),
  );
}

/** As endpoints of WorkloadEntries have it. */
function machinePort(ports: Readonly<Record<string, number>>, name: string, wanted: number | string, number: number) {
  return ports[name] ?? (typeof wanted === "number" ? wanted : (ports[wanted] ?? number));
}

/** A port by number, or by the name that a container of the pod gives it; undefined when no container does. */
export function resolveTargetPort(targetPort: number | string, podPorts: readonly PodPort[]): number | undefined {
  if (typeof targetPort === "number") return targetPort;
  return podPorts.find((port) => port.name === targetPort)?.containerPort;
}
