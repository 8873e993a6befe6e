// Resources as a table for people: the columns of each kind, in one place.
import { kindDefinitions, secretKeys, type Kind, type MeshResource, type Pod, type ResourceOf } from "@tulle/config";
import type { ResourceStatus } from "@tulle/config/api";
import { ageText } from "./age-text.ts";
import { formatFitting } from "./format-table.ts";

interface Column<R> {
  readonly title: string;
  readonly isWide?: boolean;
  readonly value: (resource: R) => string;
}

type Columns = { readonly [K in Kind]: readonly Column<ResourceOf<K>>[] };

const columns: Columns = {
  Namespace: [{ title: "INJECTION", value: ({ metadata }) => injection(metadata.labels ?? {}) }],
  Node: [
    { title: "REGION", value: ({ metadata }) => metadata.labels?.["topology.kubernetes.io/region"] ?? "<none>" },
    { title: "ZONE", value: ({ metadata }) => metadata.labels?.["topology.kubernetes.io/zone"] ?? "<none>" },
  ],
  ServiceAccount: [],
  Service: [
    { title: "TYPE", value: ({ spec }) => spec.type },
    {
      title: "PORTS",
      value: ({ spec }) => join(spec.ports.map(({ port, targetPort = port }) => `${port}:${targetPort}`)),
    },
    { title: "CLUSTER-IP", isWide: true, value: ({ spec }) => join(spec.clusterIPs ?? [spec.clusterIP ?? "<none>"]) },
    {
      title: "NODE-PORTS",
      isWide: true,
      value: ({ spec }) =>
        join(spec.ports.flatMap(({ port, nodePort }) => (nodePort === undefined ? [] : [`${port}:${nodePort}`]))),
    },
    { title: "SELECTOR", isWide: true, value: ({ spec }) => labels(spec.selector) },
  ],
  EndpointSlice: [
    { title: "PORTS", value: ({ ports }) => join(ports.map(({ port }) => String(port))) },
    {
      title: "ENDPOINTS",
      value: ({ endpoints }) => join(endpoints.map(({ addresses }) => addresses[0] ?? "")),
    },
  ],
  Pod: [
    { title: "READY", value: ({ status }) => readiness(status?.containerStatuses) },
    { title: "STATUS", value: podStatus },
    {
      title: "RESTARTS",
      value: ({ status }) =>
        String((status?.containerStatuses ?? []).reduce((sum, { restartCount = 0 }) => sum + restartCount, 0)),
    },
    { title: "AGE", value: ({ metadata }) => ageText(metadata.creationTimestamp) },
    { title: "IP", isWide: true, value: ({ status }) => status?.podIP ?? "<none>" },
    { title: "NODE", isWide: true, value: ({ spec }) => spec.nodeName ?? "<none>" },
  ],
  Deployment: [
    { title: "REPLICAS", value: ({ spec }) => String(spec.replicas) },
    {
      title: "CONTAINERS",
      isWide: true,
      value: ({ spec }) => join(spec.template.spec.containers.map(({ name }) => name)),
    },
    { title: "SELECTOR", isWide: true, value: ({ spec }) => labels(spec.selector.matchLabels) },
  ],
  Gateway: [
    {
      title: "SERVERS",
      value: ({ spec }) =>
        join(spec.servers.map(({ port, hosts }) => `${port.number}/${port.protocol} ${hosts.join("|")}`)),
    },
    { title: "SELECTOR", isWide: true, value: ({ spec }) => labels(spec.selector) },
  ],
  VirtualService: [
    { title: "GATEWAYS", value: ({ spec }) => join(spec.gateways ?? ["mesh"]) },
    { title: "HOSTS", value: ({ spec }) => join(spec.hosts) },
    { title: "ROUTES", isWide: true, value: ({ spec }) => String(spec.http?.length ?? 0) },
  ],
  DestinationRule: [
    { title: "HOST", value: ({ spec }) => spec.host },
    { title: "SUBSETS", value: ({ spec }) => join((spec.subsets ?? []).map(({ name }) => name)) },
  ],
  Secret: [
    { title: "TYPE", value: ({ type }) => type ?? "Opaque" },
    { title: "KEYS", value: (secret) => join(secretKeys(secret)) },
  ],
  ConfigMap: [{ title: "KEYS", value: ({ data }) => join(Object.keys(data ?? {})) }],
  AuthorizationPolicy: [
    { title: "ACTION", value: ({ spec }) => spec.action ?? "ALLOW" },
    { title: "RULES", value: ({ spec }) => String(spec.rules?.length ?? 0) },
    { title: "SELECTOR", isWide: true, value: ({ spec }) => labels(spec.selector?.matchLabels) },
  ],
  Telemetry: [
    {
      title: "ABOUT",
      value: ({ spec }) =>
        join((["tracing", "metrics", "accessLogging"] as const).filter((name) => spec[name] !== undefined)),
    },
    { title: "SELECTOR", isWide: true, value: ({ spec }) => labels(spec.selector?.matchLabels) },
  ],
  PeerAuthentication: [
    { title: "MODE", value: ({ spec }) => spec.mtls?.mode ?? "UNSET" },
    {
      title: "PORTS",
      value: ({ spec }) =>
        join(Object.entries(spec.portLevelMtls ?? {}).map(([port, { mode = "UNSET" }]) => `${port}=${mode}`)),
    },
    { title: "SELECTOR", isWide: true, value: ({ spec }) => labels(spec.selector?.matchLabels) },
  ],
  BrowserLogin: [
    { title: "GATEWAYS", value: ({ spec }) => join(spec.gateways) },
    { title: "HOSTS", value: ({ spec }) => join(spec.hosts) },
    { title: "ISSUER", value: ({ spec }) => spec.provider.issuer },
    { title: "CLIENT", isWide: true, value: ({ spec }) => spec.clientID },
  ],
  ServiceEntry: [
    { title: "HOSTS", value: ({ spec }) => join(spec.hosts) },
    { title: "LOCATION", value: ({ spec }) => spec.location ?? "MESH_EXTERNAL" },
    { title: "RESOLUTION", value: ({ spec }) => spec.resolution ?? "NONE" },
    {
      title: "PORTS",
      isWide: true,
      value: ({ spec }) => join((spec.ports ?? []).map(({ number, protocol = "" }) => `${number}/${protocol}`)),
    },
  ],
  WorkloadEntry: [
    { title: "ADDRESS", value: ({ spec }) => spec.address ?? "<none>" },
    { title: "LABELS", isWide: true, value: ({ metadata, spec }) => labels({ ...spec.labels, ...metadata.labels }) },
  ],
  WorkloadGroup: [],
  Rollout: [
    { title: "PHASE", value: (rollout) => stateOf(rollout)?.phase ?? "<unknown>" },
    { title: "WEIGHT", value: (rollout) => `${stateOf(rollout)?.weight ?? 0} %` },
    { title: "STEP", value: (rollout) => stepOf(stateOf(rollout)) },
    { title: "HOST", value: ({ spec }) => spec.host },
    {
      title: "STRATEGY",
      isWide: true,
      value: ({ spec }) => (spec.strategy.canary === undefined ? "blueGreen" : "canary"),
    },
    { title: "STABLE", value: ({ spec }) => spec.stable.subset ?? labels(spec.stable.labels) },
    { title: "CANARY", value: ({ spec }) => spec.canary.subset ?? labels(spec.canary.labels) },
  ],
  RequestAuthentication: [
    { title: "ISSUERS", value: ({ spec }) => join((spec.jwtRules ?? []).map(({ issuer }) => issuer)) },
    { title: "SELECTOR", isWide: true, value: ({ spec }) => labels(spec.selector?.matchLabels) },
  ],
};

/** The table with its heading; every line ends with a line feed. */
export function resourceTable(
  kind: Kind,
  resources: readonly MeshResource[],
  options: {
    readonly isWide: boolean;
    readonly withNamespace: boolean;
    /** Width of the terminal, if there is one. */
    readonly columns: number | undefined;
  },
): string {
  const isNamespaced = kindDefinitions[kind].scope === "Namespaced";
  const shown: Column<MeshResource>[] = [
    ...(options.withNamespace && isNamespaced
      ? [{ title: "NAMESPACE", value: ({ metadata }: MeshResource) => metadata.namespace }]
      : []),
    { title: "NAME", value: ({ metadata }) => metadata.name },
    // The resources are of this kind, which the compiler cannot follow through the table.
    ...(columns[kind] as readonly Column<never>[] as readonly Column<MeshResource>[]).filter(
      ({ isWide = false }) => options.isWide || !isWide,
    ),
  ];
  return formatFitting(
    shown.map(({ title }) => title),
    resources.map((resource) => shown.map(({ value }) => value(resource))),
    { columns: options.columns, gaps: [3, 2], title: shown.findIndex(({ title }) => title === "NAME") },
  );
}

/** Where the control plane says that it stands. */
function stateOf(rollout: ResourceOf<"Rollout">): ResourceStatus["rollout"] {
  return (rollout as { readonly status?: ResourceStatus }).status?.rollout;
}

/** Steps that are done, of how many. */
function stepOf(state: ResourceStatus["rollout"]): string {
  return state === undefined ? "<unknown>" : `${state.step}/${state.steps.length}`;
}

function join(values: readonly string[]): string {
  return values.length === 0 ? "<none>" : values.join(",");
}

function labels(selector: Readonly<Record<string, string>> | undefined): string {
  return join(Object.entries(selector ?? {}).map(([key, value]) => `${key}=${value}`));
}

function injection(namespaceLabels: Readonly<Record<string, string>>): string {
  return namespaceLabels["tulle-injection"] ?? namespaceLabels["istio-injection"] ?? "<unset>";
}

function readiness(statuses: readonly { readonly ready?: boolean }[] = []): string {
  return `${statuses.filter(({ ready }) => ready === true).length}/${statuses.length}`;
}

/** What a container is held up by, as kubectl shows it, else the phase. */
function podStatus({ metadata, status }: Pod): string {
  if (metadata.deletionTimestamp !== undefined) return "Terminating";
  const reasons = (status?.containerStatuses ?? []).map(
    ({ state }) => state?.waiting?.reason ?? state?.terminated?.reason,
  );
  // Of a pod that starts, most is what it waits for; what has failed says more.
  const held = reasons.filter((reason) => reason !== undefined);
  return held.find((reason) => reason !== "PodInitializing") ?? held[0] ?? status?.phase ?? "Unknown";
}
