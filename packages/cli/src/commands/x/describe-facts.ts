// What `tulle x describe` says of a pod or a Service: found in the mesh's resources by the same rules as the control
// plane's.
import {
  type DestinationRule,
  type Gateway,
  hostCovers,
  isBehind,
  selects,
  type HttpMatch,
  modeOfPort,
  type MutualTlsMode,
  mutualTlsModes,
  peerAuthenticationScope,
  type PeerAuthentication,
  type Pod,
  policyHolds,
  policyScope,
  portProtocol,
  type RequestAuthentication,
  resolveGateway,
  resolveHost,
  type Service,
  serviceHost,
  type ServicePort,
  type StringMatch,
  type TrafficPolicy,
  type VirtualService,
  proxyContainers,
} from "@tulle/config";
import { type PublishedPort, publishedUrl } from "@tulle/local/instance";

export interface DescribedMesh {
  readonly pods: readonly Pod[];
  readonly services: readonly Service[];
  readonly destinationRules: readonly DestinationRule[];
  readonly virtualServices: readonly VirtualService[];
  readonly gateways: readonly Gateway[];
  /** Oldest first. */
  readonly peerAuthentications: readonly PeerAuthentication[];
  readonly requestAuthentications: readonly RequestAuthentication[];
  readonly publishedPorts: readonly PublishedPort[];
}

interface Named {
  readonly name: string;
  readonly namespace: string;
}

export interface PodFacts extends Named {
  readonly ports: readonly { readonly port: number; readonly container: string }[];
  readonly proxy: "sidecar" | "gateway" | "none";
  readonly ready: boolean;
  /** Of a pod that is not ready: which probe fails, or why it cannot run, where that is known. */
  readonly notReadyBecause?: string;
  readonly services: readonly ServiceFacts[];
  /** Undefined for gateways and pods without a proxy, whose ports are none of the mesh's. */
  readonly mutualTls?: MutualTlsFacts;
  readonly requestAuthentications: readonly RequestAuthenticationFacts[];
  readonly exposures: readonly ExposureFacts[];
}

export interface ServiceFacts extends Named {
  readonly ports: readonly PortFacts[];
  readonly pods: readonly string[];
  readonly destinationRules: readonly DestinationRuleFacts[];
  /** Of callers within the mesh. */
  readonly virtualServices: readonly VirtualServiceFacts[];
}

export interface DescribedService extends ServiceFacts {
  readonly exposures: readonly ExposureFacts[];
}

interface PortFacts {
  readonly name: string;
  readonly port: number;
  readonly protocol: string;
  /** By number, or the name that no pod has. */
  readonly targetPort: number | string;
}

interface DestinationRuleFacts extends Named {
  readonly host: string;
  readonly matchingSubsets: readonly string[];
  readonly otherSubsets: readonly string[];
  readonly tlsMode?: string;
  readonly policies: readonly string[];
}

export interface VirtualServiceFacts extends Named {
  /** Routes that lead here, in their order. */
  readonly routes: readonly RouteFacts[];
  /** How many routes lead elsewhere alone. */
  readonly otherRoutes: number;
}

interface RouteFacts {
  /** Empty = whatever comes. */
  readonly matches: readonly string[];
  readonly destinations: readonly string[];
}

interface MutualTlsFacts {
  readonly mode: MutualTlsMode;
  /** Of ports that differ. */
  readonly ports: Readonly<Record<number, MutualTlsMode>>;
  readonly applied: readonly Named[];
}

interface RequestAuthenticationFacts extends Named {
  readonly issuers: readonly string[];
}

export interface ExposureFacts {
  readonly gateway: Named;
  readonly urls: readonly string[];
  readonly virtualService: VirtualServiceFacts;
}

export function describePod(mesh: DescribedMesh, pod: Pod): PodFacts {
  const services = mesh.services.filter((service) => isSelected(service, pod));
  const { name, namespace, labels = {} } = pod.metadata;
  const proxy = proxyOf(pod);
  const workload = { namespace, labels };
  const condition = pod.status?.conditions?.find(({ type }) => type === "Ready");
  return {
    name,
    namespace,
    ports: pod.spec.containers.flatMap((container) =>
      (container.ports ?? []).map(({ containerPort }) => ({ port: containerPort, container: container.name })),
    ),
    proxy,
    ready: condition?.status === "True",
    ...(condition?.status === "True" || condition?.message === undefined ? {} : { notReadyBecause: condition.message }),
    services: services.map((service) => serviceFacts(mesh, service, [pod])),
    ...(proxy === "sidecar" ? { mutualTls: mutualTlsFacts(mesh, workload) } : {}),
    requestAuthentications: mesh.requestAuthentications.flatMap((each) => {
      if (!policyHolds(policyScope(each), workload)) return [];
      return [{ ...named(each), issuers: (each.spec.jwtRules ?? []).map(({ issuer }) => issuer) }];
    }),
    exposures: services.flatMap((service) => exposures(mesh, service, [pod])),
  };
}

export function describeService(mesh: DescribedMesh, service: Service): DescribedService {
  const pods = mesh.pods.filter((pod) => isSelected(service, pod));
  return { ...serviceFacts(mesh, service, pods), exposures: exposures(mesh, service, pods) };
}

export function isSelected(service: Service, { metadata: { namespace, labels = {} } }: Pod): boolean {
  return isBehind(service, { namespace, labels });
}

function hasLabels(pod: Pod, wanted: Readonly<Record<string, string>> = {}): boolean {
  return selects(wanted, pod.metadata.labels ?? {});
}

function named({ metadata: { name, namespace } }: { readonly metadata: Named }): Named {
  return { name, namespace };
}

/** On one machine the proxy is among the containers' states, on Kubernetes among the containers too. */
function proxyOf({ metadata, spec, status }: Pod): PodFacts["proxy"] {
  const annotations = metadata.annotations ?? {};
  const templates = annotations["inject.tulle.io/templates"] ?? annotations["inject.istio.io/templates"];
  if (templates === "gateway") return "gateway";
  const containers = [...spec.containers, ...(spec.initContainers ?? []), ...(status?.containerStatuses ?? [])];
  return containers.some(({ name }) => proxyContainers.has(name)) ? "sidecar" : "none";
}

function serviceFacts(mesh: DescribedMesh, service: Service, pods: readonly Pod[]): ServiceFacts {
  const { name, namespace } = service.metadata;
  const host = serviceHost(name, namespace);
  return {
    name,
    namespace,
    ports: service.spec.ports.map((port) => ({
      name: port.name ?? "",
      port: port.port,
      protocol: portProtocol(port).toUpperCase(),
      targetPort: targetPort(port, pods),
    })),
    pods: pods.map(({ metadata }) => metadata.name),
    destinationRules: mesh.destinationRules
      .filter((rule) => hostCovers(resolve(mesh, rule.spec.host, rule), host))
      .map((rule) => destinationRuleFacts(rule, pods)),
    virtualServices: mesh.virtualServices
      .filter((each) => gatewaysOf(each).includes("mesh"))
      .filter((each) => each.spec.hosts.some((pattern) => hostCovers(resolve(mesh, pattern, each), host)))
      .map((each) => virtualServiceFacts(mesh, each, host, pods)),
  };
}

function targetPort({ port, targetPort: target = port }: ServicePort, pods: readonly Pod[]): number | string {
  if (typeof target === "number") return target;
  const ports = pods.flatMap(({ spec }) => spec.containers.flatMap((container) => container.ports ?? []));
  return ports.find(({ name }) => name === target)?.containerPort ?? target;
}

function resolve(mesh: DescribedMesh, host: string, from: { readonly metadata: Named }): string {
  const isService = (fullName: string): boolean =>
    mesh.services.some(({ metadata }) => serviceHost(metadata.name, metadata.namespace) === fullName);
  return resolveHost(host, from.metadata.namespace, isService);
}

function gatewaysOf({ metadata, spec }: VirtualService): readonly string[] {
  const references = spec.gateways ?? [];
  return references.length === 0 ? ["mesh"] : references.map((each) => resolveGateway(each, metadata.namespace));
}

function destinationRuleFacts(rule: DestinationRule, pods: readonly Pod[]): DestinationRuleFacts {
  const { host, subsets = [], trafficPolicy } = rule.spec;
  const matches = ({ labels }: (typeof subsets)[number]): boolean => pods.some((pod) => hasLabels(pod, labels));
  return {
    ...named(rule),
    host,
    matchingSubsets: subsets.filter(matches).map(({ name }) => name),
    otherSubsets: subsets.filter((subset) => !matches(subset)).map(({ name }) => name),
    ...(trafficPolicy?.tls?.mode === undefined ? {} : { tlsMode: trafficPolicy.tls.mode }),
    policies: policyNames(trafficPolicy),
  };
}

function policyNames(policy: TrafficPolicy | undefined): readonly string[] {
  const names = {
    loadBalancer: "load balancer",
    connectionPool: "connection pool",
    outlierDetection: "outlier detection",
  };
  return Object.entries(names).flatMap(([field, name]) => (policy?.[field as keyof typeof names] ? [name] : []));
}

type AnyRoute = {
  readonly match?: readonly object[];
  readonly route?: readonly {
    readonly destination: { readonly host: string; readonly subset?: string };
    readonly weight?: number;
  }[];
};

/** A route leads here when one of its destinations is the Service, in a subset that one of `pods` belongs to. */
function virtualServiceFacts(
  mesh: DescribedMesh,
  service: VirtualService,
  host: string,
  pods: readonly Pod[],
): VirtualServiceFacts {
  const { http = [], tls = [], tcp = [] } = service.spec;
  const all: readonly AnyRoute[] = [...http, ...tls, ...tcp];
  const subsets = mesh.destinationRules
    .filter((rule) => hostCovers(resolve(mesh, rule.spec.host, rule), host))
    .flatMap((rule) => rule.spec.subsets ?? []);
  const leadsHere = ({ destination }: NonNullable<AnyRoute["route"]>[number]): boolean => {
    if (resolve(mesh, destination.host, service) !== host) return false;
    if (destination.subset === undefined) return true;
    const labels = subsets.find(({ name }) => name === destination.subset)?.labels;
    return labels !== undefined && pods.some((pod) => hasLabels(pod, labels));
  };
  const here = all.filter(({ route = [] }) => route.some(leadsHere));
  return {
    ...named(service),
    routes: here.map(({ match = [], route = [] }) => ({
      matches: match.map(matchText),
      destinations: route.map((each) => destinationText(each, route.length)),
    })),
    otherRoutes: all.length - here.length,
  };
}

function destinationText(
  { destination: { host, subset }, weight = 0 }: NonNullable<AnyRoute["route"]>[number],
  count: number,
): string {
  const where = `host "${host}"${subset === undefined ? "" : ` subset "${subset}"`}`;
  return count === 1 ? where : `${where} with weight ${weight}`;
}

/** Conditions of HTTP routes, and of connections by server name or port. */
function matchText(match: HttpMatch & { readonly sniHosts?: readonly string[] }): string {
  const parts = [
    match.sniHosts === undefined ? [] : [`server name ${match.sniHosts.join(", ")}`],
    match.method === undefined ? [] : [valueText(match.method)],
    match.authority === undefined ? [] : [`host ${valueText(match.authority)}`],
    match.uri === undefined ? [] : [valueText(match.uri)],
    match.scheme === undefined ? [] : [`scheme ${valueText(match.scheme)}`],
    Object.entries(match.headers ?? {}).map(([name, value]) => `${name}: ${valueText(value)}`),
    Object.entries(match.withoutHeaders ?? {}).map(([name, value]) => `not ${name}: ${valueText(value)}`),
    Object.entries(match.queryParams ?? {}).map(([name, value]) => `?${name}=${valueText(value)}`),
    match.port === undefined ? [] : [`port ${match.port}`],
    match.gateways === undefined ? [] : [`gateways ${match.gateways.join(", ")}`],
    match.sourceNamespace === undefined ? [] : [`from the namespace ${match.sourceNamespace}`],
    Object.entries(match.sourceLabels ?? {}).map(([name, value]) => `from ${name}=${value}`),
  ].flat();
  return parts.length === 0 ? "everything" : parts.join(", ");
}

function valueText({ exact, prefix, regex }: StringMatch): string {
  return exact ?? (prefix === undefined ? undefined : `${prefix}*`) ?? (regex === undefined ? "any" : `regex ${regex}`);
}

function mutualTlsFacts(
  { peerAuthentications }: DescribedMesh,
  workload: { readonly namespace: string; readonly labels: Readonly<Record<string, string>> },
): MutualTlsFacts {
  const modes = mutualTlsModes(peerAuthentications.map(peerAuthenticationScope), workload);
  const applied = peerAuthentications.filter((each) => {
    const scope = peerAuthenticationScope(each);
    return policyHolds(scope, workload);
  });
  const ports = Object.keys(modes.ports).map((port) => [port, modeOfPort(modes, Number(port))]);
  return { mode: modes.mode, ports: Object.fromEntries(ports), applied: applied.map(named) };
}

/** By VirtualServices of gateways whose routes lead to the Service. */
function exposures(mesh: DescribedMesh, service: Service, pods: readonly Pod[]): readonly ExposureFacts[] {
  const host = serviceHost(service.metadata.name, service.metadata.namespace);
  return mesh.virtualServices.flatMap((each) => {
    const virtualService = virtualServiceFacts(mesh, each, host, pods);
    if (virtualService.routes.length === 0) return [];
    return gatewaysOf(each).flatMap((reference) => {
      const gateway = mesh.gateways.find(({ metadata }) => `${metadata.namespace}/${metadata.name}` === reference);
      return gateway === undefined ? [] : [{ gateway: named(gateway), urls: urlsOf(mesh, gateway), virtualService }];
    });
  });
}

/** Ports of this machine that lead to the gateway's servers. */
function urlsOf(mesh: DescribedMesh, gateway: Gateway): readonly string[] {
  const pods = mesh.pods.filter((pod) => proxyOf(pod) === "gateway" && hasLabels(pod, gateway.spec.selector));
  const services = mesh.services.filter((service) => pods.some((pod) => isSelected(service, pod)));
  const urls = services.flatMap((service) => {
    const served = service.spec.ports.filter(({ port }) =>
      gateway.spec.servers.some((each) => each.port.number === port),
    );
    const targets = served.map((port) => targetPort(port, pods));
    const name = `${service.metadata.name}.${service.metadata.namespace}`;
    return mesh.publishedPorts.filter((each) => each.service === name && targets.includes(each.targetPort));
  });
  return [...new Set(urls.map(publishedUrl))];
}
