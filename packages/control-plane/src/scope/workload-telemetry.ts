// (snapshot, proxy) → the traces, metrics and access logs of its workload: the Telemetry resources of the mesh, of the
// namespace and of the workload, merged as Istio merges them (pilot/pkg/model/telemetry.go). Nothing at all where
// nothing is configured, so that such a view stays as it is.
import { secretParameters } from "@tulle/telemetry";
import { type CustomTag, gatewayNameLabel, istioMetrics, rootNamespaces, selects } from "@tulle/config";
import type { MeshSnapshot } from "../snapshot/mesh-snapshot.ts";
import { findProvider, type MeshTelemetry, type ProviderTarget } from "../snapshot/telemetry.ts";
import type { TelemetryProvider, TelemetrySettings, TracingSpec } from "../snapshot/telemetry.ts";
import type { Proxy } from "./proxy.ts";

/** Requests of the workload and of gateways, or requests to the workload. */
type Mode = "CLIENT" | "SERVER";

export interface WorkloadTelemetry {
  readonly client: ListenerTelemetry;
  readonly server: ListenerTelemetry;
  /** Hosts outside the mesh that it sends to. */
  readonly outside: readonly OutsideTarget[];
  readonly withoutListenerLog?: true;
}

/** Of the workload's own kind of spans. */
export interface ListenerTelemetry {
  /** Missing where no spans are made. */
  readonly tracing?: ListenerTracing;
  readonly accessLogs: readonly ListenerLog[];
  /** What leaves secrets out itself, where Envoy can only leave out more. */
  readonly isTulle?: true;
  /** Missing where Istio's metrics are not kept at all. */
  readonly metrics?: ListenerMetrics;
}

export interface ListenerTracing {
  readonly provider: TelemetryProvider;
  /** What the spans say who makes them. */
  readonly serviceName: string;
  readonly samplingPercentage: number;
  readonly customTags: Readonly<Record<string, CustomTag>>;
  /** Missing where they have none. */
  readonly istioTags?: Readonly<Record<string, string>>;
  readonly maxPathTagLength?: number;
  readonly useRequestId: boolean;
  readonly withoutPropagation?: true;
}

export interface ListenerLog {
  readonly provider: TelemetryProvider;
  /** CEL. */
  readonly expression?: string;
}

export interface ListenerMetrics {
  readonly overrides: readonly MetricOverride[];
  /** As written. */
  readonly reportingInterval?: string;
}

export interface MetricOverride {
  /** One of Istio's names (`REQUEST_COUNT`), or that of a metric without `istio_`. */
  readonly metric: string;
  readonly disabled?: boolean;
  /** CEL by label; null takes the label away. */
  readonly tags: Readonly<Record<string, string | null>>;
}

/** A host and port with what is spoken to it. */
export interface OutsideTarget extends ProviderTarget {
  readonly protocol: "grpc" | "http";
}

type Workload = Pick<Proxy, "namespace" | "labels" | "type" | "clusterId" | "isTulle">;

/** `isReachable`: whether the view has the clusters of a Service. */
export function workloadTelemetry(
  { telemetry, trustDomain, redactedParameters }: MeshSnapshot,
  workload: Workload,
  isReachable: (hostname: string) => boolean,
): { readonly telemetry?: WorkloadTelemetry } {
  if (telemetry === undefined) return {};
  const layers = layersOf(telemetry.resources, workload);
  const providers = telemetry.settings.providers.filter((provider) => reaches(provider, isReachable));
  const settings = { ...telemetry.settings, providers };
  const of = (mode: Mode): ListenerTelemetry => ({
    ...tracingOf(layers, settings, mode, { ...workload, trustDomain, redactedParameters }),
    accessLogs: accessLogsOf(layers, settings, mode),
    ...(workload.isTulle === true ? { isTulle: true } : {}),
    ...metricsOf(layers, settings, mode),
  });
  const client = of("CLIENT");
  const server = of("SERVER");
  return {
    telemetry: {
      client,
      server,
      outside: outsideTargets(usedProviders([client, server])),
      ...(settings.withoutListenerLog === undefined ? {} : { withoutListenerLog: true }),
    },
  };
}

function reaches({ target }: TelemetryProvider, isReachable: (hostname: string) => boolean): boolean {
  return target === undefined || target.isOutside === true || isReachable(target.host);
}

function usedProviders(listeners: readonly ListenerTelemetry[]): readonly TelemetryProvider[] {
  return listeners.flatMap(({ tracing, accessLogs }) => [
    ...(tracing === undefined ? [] : [tracing.provider]),
    ...accessLogs.map(({ provider }) => provider),
  ]);
}

/** Hosts of Services of the mesh that a gateway's telemetry goes to. */
export function telemetryHosts(
  snapshot: MeshSnapshot,
  gateway: Pick<Proxy, "namespace" | "labels">,
): readonly string[] {
  const { telemetry } = workloadTelemetry(snapshot, { ...gateway, type: "router", clusterId: "" }, () => true);
  return usedProviders(telemetry === undefined ? [] : [telemetry.client]).flatMap(({ target }) =>
    target === undefined || target.isOutside === true ? [] : [target.host],
  );
}

/** At most one for the mesh, one for the namespace and one for the workload, in this order. */
function layersOf(resources: readonly MeshTelemetry[], { namespace, labels }: Workload): readonly MeshTelemetry[] {
  const isRoot = (each: string): boolean => rootNamespaces.includes(each);
  const isForAll = ({ matchLabels, gateways }: MeshTelemetry): boolean =>
    gateways === undefined && Object.keys(matchLabels).length === 0;
  const mesh = resources.find((each) => isRoot(each.namespace) && isForAll(each));
  const ofNamespace = resources.filter((each) => each.namespace === namespace);
  const shared = isRoot(namespace) ? undefined : ofNamespace.find(isForAll);
  const own = ofNamespace.find(({ matchLabels, gateways, ...each }) => {
    if (gateways !== undefined) return gateways.includes(labels[gatewayNameLabel] ?? "");
    return !isForAll({ ...each, matchLabels }) && selects(matchLabels, labels);
  });
  return [mesh, shared, own].filter((each) => each !== undefined);
}

function isAbout(match: TracingSpec["match"], mode: Mode): boolean {
  return match?.mode === undefined || match.mode === "CLIENT_AND_SERVER" || match.mode === mode;
}

const lower = (name: string): string => name.toLowerCase();

const namesOf = (providers: TracingSpec["providers"]): readonly string[] => (providers ?? []).map(({ name }) => name);

/** Envoy: max_path_tag_length. */
const defaultPathTagLength = 256;
/** Istio: features.TraceSampling. */
const defaultSamplingPercentage = 1;

function tracingOf(
  layers: readonly MeshTelemetry[],
  { providers, tracingProviders, tracing: ofMesh = {} }: TelemetrySettings,
  mode: Mode,
  workload: Traced,
): Pick<ListenerTelemetry, "tracing"> {
  // The last that says something of a field counts, each field for itself.
  const said: Omit<TracingSpec, "match"> = Object.assign(
    {},
    ...layers.flatMap(({ tracing }) => tracing.filter(({ match }) => isAbout(match, mode)).map(withoutEmptyProviders)),
  );
  const [name = tracingProviders[0]] = namesOf(said.providers);
  const provider = name === undefined ? undefined : findProvider(providers, name);
  const { opentelemetry, zipkin } = provider ?? {};
  const settings = opentelemetry ?? zipkin;
  if (provider === undefined || settings === undefined || said.disableSpanReporting === true) return {};
  const { maxTagLength = 0 } = settings;
  const maxPathTagLength = maxTagLength > 0 ? maxTagLength : (ofMesh.maxPathTagLength ?? 0);
  const { customTags = {}, enableIstioTags = ofMesh.enableIstioTags ?? true } = said;
  return {
    tracing: {
      provider,
      serviceName: `${workload.labels["app"] ?? (workload.type === "router" ? "istio-gateway" : "istio-proxy")}.${workload.namespace}`,
      samplingPercentage: said.randomSamplingPercentage ?? ofMesh.sampling ?? defaultSamplingPercentage,
      customTags: {
        ...givenTags(workload, maxPathTagLength),
        ...(Object.keys(customTags).length === 0 ? ofMesh.customTags : customTags),
      },
      ...(enableIstioTags ? { istioTags: istioTagsOf(workload) } : {}),
      ...(maxPathTagLength > 0 ? { maxPathTagLength } : {}),
      useRequestId: said.useRequestIdForTraceSampling ?? true,
      ...(said.disableContextPropagation === true ? { withoutPropagation: true } : {}),
    },
  };
}

function withoutEmptyProviders({ providers, ...rest }: TracingSpec): TracingSpec {
  return providers === undefined || providers.length === 0 ? rest : { ...rest, providers };
}

interface Traced extends Workload {
  readonly trustDomain: string | undefined;
  readonly redactedParameters: readonly string[] | undefined;
}

/**
 * What Tulle's own proxy gives its spans by itself: the revision of the routes, and the URL without secrets, which
 * Envoy can only leave out with the whole query.
 */
function givenTags(
  { isTulle, redactedParameters = secretParameters }: Traced,
  maxPathTagLength: number,
): Record<string, CustomTag> {
  if (isTulle === true) return {};
  const url = `%REQ(X-FORWARDED-PROTO)%://%REQ(:AUTHORITY)%%PATH(NQ):${maxPathTagLength || defaultPathTagLength}%`;
  return {
    ...(redactedParameters.length === 0 ? {} : { "http.url": { formatter: { value: url } } }),
    "tulle.config.revision": { formatter: { value: "%METADATA(VIRTUAL_HOST:tulle:revision)%" } },
  };
}

/** Istio: buildServiceTags. */
function istioTagsOf({ labels, namespace, clusterId, trustDomain = "cluster.local" }: Traced) {
  const first = (...names: readonly string[]): string | undefined =>
    names.map((name) => labels[name]).find((value) => value !== undefined && value !== "");
  return {
    "istio.canonical_revision":
      first("service.istio.io/canonical-revision", "app.kubernetes.io/version", "version") ?? "latest",
    "istio.canonical_service": first("service.istio.io/canonical-name", "app.kubernetes.io/name", "app") ?? "unknown",
    "istio.cluster_id": clusterId === "" ? "unknown" : clusterId,
    "istio.mesh_id": trustDomain,
    "istio.namespace": namespace,
  };
}

/** Providers of a layer take the place of those above; each has the last entry that is about it and the mode. */
function accessLogsOf(
  layers: readonly MeshTelemetry[],
  { providers, accessLoggingProviders }: TelemetrySettings,
  mode: Mode,
): readonly ListenerLog[] {
  const entries = layers.map(({ accessLogging }) => accessLogging);
  const named = entries.map((layer) => layer.flatMap((each) => namesOf(each.providers)));
  const inScope = new Set((named.findLast((names) => names.length > 0) ?? accessLoggingProviders).map(lower));
  const logs = new Map<string, string | undefined>();
  // A layer that logs nothing itself leaves the default as it is.
  if (entries.flat().length === 0) for (const name of inScope) logs.set(name, undefined);
  let above = accessLoggingProviders;
  for (const entry of entries.flat()) {
    const own = namesOf(entry.providers);
    if (own.length > 0) above = own;
    if (!isAbout(entry.match, mode)) continue;
    for (const name of above.map(lower).filter((each) => inScope.has(each))) {
      if (entry.disabled === true) logs.delete(name);
      else logs.set(name, entry.filter?.expression);
    }
  }
  return [...logs].flatMap(([name, expression]) => {
    const provider = findProvider(providers, name);
    return provider === undefined ? [] : [{ provider, ...(expression === undefined ? {} : { expression }) }];
  });
}

function metricsOf(
  layers: readonly MeshTelemetry[],
  { providers, metricsProviders }: TelemetrySettings,
  mode: Mode,
): Pick<ListenerTelemetry, "metrics"> {
  const entries = layers.flatMap(({ metrics }) => metrics);
  const named = entries.map(({ providers: own }) => namesOf(own)).findLast((names) => names.length > 0);
  const inScope = (named ?? metricsProviders).find((name) => findProvider(providers, name)?.prometheus !== undefined);
  if (inScope === undefined) return {};
  const overrides = new Map<string, MetricOverride>();
  let isOff = false;
  let reportingInterval: string | undefined;
  let above = metricsProviders;
  for (const entry of entries) {
    const own = namesOf(entry.providers);
    if (own.length > 0) above = own;
    if (!above.some((name) => lower(name) === lower(inScope))) continue;
    reportingInterval = entry.reportingInterval ?? reportingInterval;
    for (const { match, disabled, tagOverrides = {} } of entry.overrides ?? []) {
      if (!isAbout(match, mode)) continue;
      // Everything off is one thing, and whatever is said of a metric after it switches them on again (Istio).
      isOff = match?.metric === "ALL_METRICS" && disabled === true;
      if (isOff) continue;
      for (const metric of metricsOfMatch(match)) {
        const before = overrides.get(metric);
        const off = disabled ?? before?.disabled;
        const tags = Object.entries(tagOverrides).map(([tag, { operation, value = "" }]) => [
          tag,
          operation === "REMOVE" ? null : value,
        ]);
        overrides.set(metric, {
          metric,
          ...(off === undefined ? {} : { disabled: off }),
          tags: { ...before?.tags, ...Object.fromEntries(tags) },
        });
      }
    }
  }
  if (isOff) return {};
  const inOrder = [...overrides.values()].sort((a, b) => (a.metric < b.metric ? -1 : 1));
  return { metrics: { overrides: inOrder, ...(reportingInterval === undefined ? {} : { reportingInterval }) } };
}

type MetricMatch = NonNullable<NonNullable<MeshTelemetry["metrics"][number]["overrides"]>[number]["match"]>;

function metricsOfMatch(match: MetricMatch | undefined): readonly string[] {
  if (match?.customMetric !== undefined) return [match.customMetric];
  return match?.metric === undefined || match.metric === "ALL_METRICS" ? istioMetrics : [match.metric];
}

/** By host, port and protocol, once each. */
function outsideTargets(providers: readonly TelemetryProvider[]): readonly OutsideTarget[] {
  const targets = new Map<string, OutsideTarget>();
  for (const { target, opentelemetry, zipkin } of providers) {
    if (target?.isOutside !== true) continue;
    const protocol = zipkin !== undefined || opentelemetry?.http !== undefined ? "http" : "grpc";
    targets.set(`${target.host}:${target.port}`, { ...target, protocol });
  }
  return [...targets.values()];
}
