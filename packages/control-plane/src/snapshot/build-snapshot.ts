// store → MeshSnapshot: pure, and the only place that reads user resources for routing. What it is given has been
// checked.
import {
  type Created,
  exportedTo,
  meshConfigOf,
  parseDuration,
  peerAuthenticationScope,
  portProtocol,
  resolveGateway,
  resolveHost,
  serviceExportTo,
  serviceHost,
  oldestFirst,
} from "@tulle/config";
import type { Destination, DestinationRule, Gateway, HttpRoute, MeshConfig, Service } from "@tulle/config";
import type { TcpRoute, TlsRoute, VirtualService } from "@tulle/config";
import { meshAuthorizers } from "./authorizers.ts";
import { type DiscoveredEndpoints, meshBrowserLogin } from "./browser-logins.ts";
import type {
  MeshDestinationRule,
  MeshGateway,
  MeshService,
  MeshSnapshot,
  MeshVirtualService,
  TlsVersion,
} from "./mesh-snapshot.ts";
import { type OverlaidParts, overlayRollouts, type RolloutOverlay } from "./rollout-overlay.ts";
import type { ResourceReader } from "./resource-reader.ts";
import { securityPolicies } from "./security-policies.ts";
import { snapshotTelemetry } from "./telemetry.ts";
import { entryServices } from "./service-entries.ts";
import { networkGateways, networksOfEndpoints } from "./networks.ts";
import { serviceWorkloads, type ServiceWorkloads } from "./service-workloads.ts";
import { mutualTlsOfWorkloads } from "./workload-mutual-tls.ts";

/** What a snapshot is made of besides resources. */
export interface SnapshotOptions {
  /** The key sets that were fetched, by `jwksLocationKey`. */
  readonly fetchedKeys?: ReadonlyMap<string, string> | undefined;
  /** Of issuers of BrowserLogins. */
  readonly discoveredEndpoints?: DiscoveredEndpoints | undefined;
  /** Where roll-outs stand. */
  readonly rollouts?: readonly RolloutOverlay[] | undefined;
  /** See `MeshSnapshot.trustDomain`. */
  readonly trustDomain?: string | undefined;
  readonly minimumTls?: TlsVersion | undefined;
  /** Worked out from the resources when missing. */
  readonly workloads?: ServiceWorkloads | undefined;
}

export function buildSnapshot(store: ResourceReader, options: SnapshotOptions = {}): MeshSnapshot {
  const { fetchedKeys = new Map(), trustDomain, minimumTls } = options;
  const workloads = trustDomain === undefined ? undefined : (options.workloads ?? serviceWorkloads(store, trustDomain));
  const meshConfig = meshConfigOf(store.list("ConfigMap"));
  const written = writtenRoutes(store, { meshConfig, workloads, trustDomain });
  const { services } = written;
  // Whom a name of an issuer or of its endpoints means: what is outside is asked there.
  const ofCluster = services.filter(({ entry }) => entry === undefined);
  const peerAuthentications = oldestFirst(store.list("PeerAuthentication")).map(peerAuthenticationScope);
  const browserLogins = oldestFirst(store.list("BrowserLogin")).map((resource) =>
    meshBrowserLogin(resource, ofCluster, options.discoveredEndpoints ?? new Map()),
  );
  const authorizers = meshAuthorizers(meshConfig, services);
  const redactedParameters = meshConfig.redactedQueryParameters?.map((name) => name.toLowerCase());
  const pathNormalization = meshConfig.pathNormalization?.normalization;
  const detectionTimeout = meshConfig.protocolDetectionTimeout;
  const topology = meshConfig.defaultConfig?.gatewayTopology;
  const gatewaysOfNetworks = networkGateways(store);
  const routed = overlayRollouts(written, options.rollouts ?? []);
  return deepFreeze({
    ...(trustDomain === undefined ? {} : { trustDomain }),
    ...(minimumTls === undefined ? {} : { minimumTls }),
    services,
    gateways: oldestFirst(store.list("Gateway")).map(meshGateway),
    virtualServices: routed.virtualServices,
    destinationRules: routed.destinationRules,
    ...securityPolicies(
      oldestFirst(store.list("AuthorizationPolicy")),
      oldestFirst(store.list("RequestAuthentication")),
      fetchedKeys,
    ),
    ...(browserLogins.length === 0 ? {} : { browserLogins }),
    ...(authorizers.length === 0 ? {} : { authorizers }),
    ...snapshotTelemetry(meshConfig, oldestFirst(store.list("Telemetry")), services),
    ...(pathNormalization === undefined ? {} : { pathNormalization }),
    ...(redactedParameters === undefined ? {} : { redactedParameters }),
    ...(detectionTimeout === undefined ? {} : { protocolDetectionTimeoutMs: parseDuration(detectionTimeout) ?? 0 }),
    ...(topology === undefined ? {} : { gatewayTopology: topology }),
    ...(meshConfig.outboundTrafficPolicy?.mode === "REGISTRY_ONLY" ? { registryOnly: true } : {}),
    ...(gatewaysOfNetworks === undefined ? {} : { networkGateways: gatewaysOfNetworks }),
    ...(peerAuthentications.length === 0 ? {} : { peerAuthentications }),
  });
}

interface WrittenOptions {
  readonly meshConfig?: MeshConfig;
  readonly workloads?: ServiceWorkloads | undefined;
  /** See `MeshSnapshot.trustDomain`. */
  readonly trustDomain?: string | undefined;
}

/** Services, routes and rules as their authors wrote them, before anything is laid over. */
export function writtenRoutes(store: ResourceReader, options: WrittenOptions = {}): OverlaidParts {
  const { meshConfig = meshConfigOf(store.list("ConfigMap")), workloads, trustDomain } = options;
  const peerAuthentications = oldestFirst(store.list("PeerAuthentication")).map(peerAuthenticationScope);
  // Where any policy says so, a pod may take none although it has a sidecar.
  const isDisabled = store
    .list("PeerAuthentication")
    .some(({ spec }) =>
      [spec.mtls, ...Object.values(spec.portLevelMtls ?? {})].some((each) => each?.mode === "DISABLE"),
    );
  const takesMutualTls = trustDomain !== undefined && !isDisabled;
  const ofCluster = oldestFirst(store.list("Service")).map((service) => ({
    ...meshService(service, workloads, meshConfig.h2UpgradePolicy, takesMutualTls),
    ...exported(service, serviceExportTo(service.metadata.annotations), meshConfig.defaultServiceExportTo),
  }));
  const modeOf = mutualTlsOfWorkloads({ peerAuthentications, ...(trustDomain === undefined ? {} : { trustDomain }) });
  const entryOptions = { meshConfig, workloads, modeOf, networkOf: networksOfEndpoints(store), services: ofCluster };
  const services = [...ofCluster, ...entryServices(store, entryOptions)];
  const hostnames = new Set(services.map((service) => service.hostname));
  const isService = (hostname: string): boolean => hostnames.has(hostname);
  return {
    services,
    virtualServices: oldestFirst(store.list("VirtualService")).map((resource) => ({
      ...meshVirtualService(resource, isService),
      ...exported(resource, resource.spec.exportTo, meshConfig.defaultVirtualServiceExportTo),
    })),
    destinationRules: oldestFirst(store.list("DestinationRule")).map((resource) => ({
      ...meshDestinationRule(resource, isService),
      ...exported(resource, resource.spec.exportTo, meshConfig.defaultDestinationRuleExportTo),
    })),
  };
}

function exported(
  { metadata }: Created,
  exportTo: readonly string[] | undefined,
  meshDefault: readonly string[] | undefined,
): { readonly exportedTo?: readonly string[] } {
  const namespaces = exportedTo(exportTo, metadata.namespace, meshDefault);
  return namespaces === undefined ? {} : { exportedTo: namespaces };
}

type IsService = (hostname: string) => boolean;

const none: readonly string[] = [];

function meshService(
  { metadata, spec }: Service,
  workloads: ServiceWorkloads | undefined,
  h2UpgradePolicy: MeshConfig["h2UpgradePolicy"],
  takesMutualTls: boolean,
): MeshService {
  const behind = workloads?.get(`${metadata.namespace}/${metadata.name}`);
  const isUpgraded = h2UpgradePolicy !== "DO_NOT_UPGRADE" && behind?.haveSidecars === true;
  const isHeadless = spec.clusterIP === "None" || spec.clusterIPs?.[0] === "None";
  const podsTakeMutualTls = isHeadless && takesMutualTls && behind?.haveSidecars === true;
  const addresses = spec.clusterIPs ?? (spec.clusterIP === undefined ? [] : [spec.clusterIP]);
  return {
    hostname: serviceHost(metadata.name, metadata.namespace),
    name: metadata.name,
    namespace: metadata.namespace,
    addresses: addresses.filter((address) => address !== "None" && address !== ""),
    selector: spec.selector ?? {},
    ports: spec.ports.map((port) => ({
      name: port.name ?? "",
      number: port.port,
      targetPort: port.targetPort ?? port.port,
      protocol: portProtocol(port),
    })),
    ...(workloads === undefined ? {} : { identities: behind?.identities ?? none }),
    ...(isUpgraded ? { isUpgraded } : {}),
    ...(podsTakeMutualTls ? { podsTakeMutualTls } : {}),
  };
}

function meshGateway({ metadata, spec }: Gateway): MeshGateway {
  return {
    name: metadata.name,
    namespace: metadata.namespace,
    selector: spec.selector ?? {},
    servers: spec.servers.map((server) => ({
      port: server.port.number,
      protocol: server.port.protocol,
      hosts: server.hosts,
      ...(server.tls === undefined ? {} : { tls: server.tls }),
      ...(server.port.protocol === "HTTPS" || server.port.protocol === "TLS" ? { portName: server.port.name } : {}),
    })),
  };
}

function meshVirtualService({ metadata, spec }: VirtualService, isService: IsService): MeshVirtualService {
  const { name, namespace } = metadata;
  const gateways = spec.gateways === undefined || spec.gateways.length === 0 ? ["mesh"] : spec.gateways;
  const hosts = spec.hosts.map((host) => resolveHost(host, namespace, isService));
  return {
    name,
    namespace,
    hosts,
    gatewayHosts: [...new Set([...hosts, ...spec.hosts.map(asWritten)])],
    gateways: gateways.map((gateway) => resolveGateway(gateway, namespace)),
    http: (spec.http ?? []).map((route) => httpRoute(route, namespace, isService)),
    ...(spec.tls === undefined ? {} : { tls: spec.tls.map((route) => connectionRoute(route, namespace, isService)) }),
    ...(spec.tcp === undefined ? {} : { tcp: spec.tcp.map((route) => connectionRoute(route, namespace, isService)) }),
  };
}

function connectionRoute<R extends TlsRoute | TcpRoute>(route: R, namespace: string, isService: IsService): R {
  return {
    ...route,
    ...(route.match === undefined
      ? {}
      : { match: route.match.map((match) => ({ ...match, ...resolvedGateways(match.gateways, namespace) })) }),
    route: route.route.map((each) => ({
      ...each,
      destination: { ...each.destination, host: resolveHost(each.destination.host, namespace, isService) },
    })),
  };
}

function resolvedGateways(gateways: readonly string[] | undefined, namespace: string): object {
  return gateways === undefined ? {} : { gateways: gateways.map((gateway) => resolveGateway(gateway, namespace)) };
}

function asWritten(host: string): string {
  return host.toLowerCase().replace(/\.$/, "");
}

function httpRoute(route: HttpRoute, namespace: string, isService: IsService): HttpRoute {
  const { match } = route;
  const resolved = resolveDestinations(route, namespace, isService);
  if (match === undefined) return resolved;
  return { ...resolved, match: match.map((each) => ({ ...each, ...resolvedGateways(each.gateways, namespace) })) };
}

function resolveDestinations(route: HttpRoute, namespace: string, isService: IsService): HttpRoute {
  if (route.route === undefined) return route;
  const resolve = (destination: Destination): Destination => ({
    ...destination,
    host: resolveHost(destination.host, namespace, isService),
  });
  return { ...route, route: route.route.map((each) => ({ ...each, destination: resolve(each.destination) })) };
}

function meshDestinationRule({ metadata, spec }: DestinationRule, isService: IsService): MeshDestinationRule {
  return {
    name: metadata.name,
    namespace: metadata.namespace,
    host: resolveHost(spec.host, metadata.namespace, isService),
    ...(spec.trafficPolicy === undefined ? {} : { trafficPolicy: spec.trafficPolicy }),
    ...(spec.workloadSelector === undefined ? {} : { workloadSelector: spec.workloadSelector.matchLabels ?? {} }),
    subsets: (spec.subsets ?? []).map((subset) => ({
      name: subset.name,
      labels: subset.labels ?? {},
      ...(subset.trafficPolicy === undefined ? {} : { trafficPolicy: subset.trafficPolicy }),
    })),
  };
}

function deepFreeze<T>(value: T): T {
  if (typeof value !== "object" || value === null || Object.isFrozen(value)) return value;
  Object.freeze(value);
  for (const child of Object.values(value)) deepFreeze(child);
  return value;
}
