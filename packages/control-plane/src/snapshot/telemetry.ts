// Telemetry resources, and what the mesh's configuration says of traces, metrics and access logs → their part of the
// snapshot. What of them a proxy would refuse is left out here, alone: the rest goes on, and analysis tells its owner.
import { isDeepStrictEqual } from "node:util";
import {
  clusterDomain,
  type ExtensionProvider,
  expressionProblem,
  jsonLogFormat,
  type MeshConfig,
  policyScope,
  type PolicyScope,
  providerHost,
  soundTags,
  type Telemetry,
  targetGateways,
} from "@tulle/config";

type TelemetrySpec = Telemetry["spec"];
export type TracingSpec = NonNullable<TelemetrySpec["tracing"]>[number];
export type MetricsSpec = NonNullable<TelemetrySpec["metrics"]>[number];
export type AccessLoggingSpec = NonNullable<TelemetrySpec["accessLogging"]>[number];
type TracingSettings = NonNullable<NonNullable<MeshConfig["defaultConfig"]>["tracing"]>;

/** Of the snapshot. */
export interface MeshTelemetries {
  readonly settings: TelemetrySettings;
  readonly resources: readonly MeshTelemetry[];
}

/** What is asked of a Service of the mesh. */
interface ServicePorts {
  readonly hostname: string;
  readonly ports: readonly { readonly number: number }[];
}

/** A Telemetry resource. */
export interface MeshTelemetry extends PolicyScope {
  /** Names of the Gateways (of the Gateway API) that it is for alone; missing where it has no targets. */
  readonly gateways?: readonly string[];
  readonly tracing: readonly TracingSpec[];
  readonly metrics: readonly MetricsSpec[];
  readonly accessLogging: readonly AccessLoggingSpec[];
}

/** Where traces, metrics or access logs go. */
export type TelemetryProvider = Omit<ExtensionProvider, "envoyExtAuthzHttp" | "envoyExtAuthzGrpc"> & {
  /** Whom it sends to; missing where it sends to nobody. */
  readonly target?: ProviderTarget;
};

export interface ProviderTarget {
  readonly host: string;
  readonly port: number;
  /** The host is none of the mesh's: it is looked up in DNS. */
  readonly isOutside?: true;
}

/** What holds for the mesh as a whole. */
export interface TelemetrySettings {
  readonly providers: readonly TelemetryProvider[];
  /** Names of providers where no Telemetry names one. */
  readonly tracingProviders: readonly string[];
  readonly metricsProviders: readonly string[];
  readonly accessLoggingProviders: readonly string[];
  readonly tracing?: TracingSettings;
  /** Connections that no filter chain takes are not logged. */
  readonly withoutListenerLog?: true;
}

/** Istio's names of what there is without configuration. */
const prometheus = "prometheus";
const defaultLog = "envoy";
/** Of the older fields of the mesh's configuration, which name no provider. */
const olderTracer = "zipkin of defaultConfig";

/** Nothing where neither resources nor the mesh's configuration say anything. */
export function snapshotTelemetry(
  config: MeshConfig,
  resources: readonly Telemetry[],
  services: readonly ServicePorts[],
): { readonly telemetry?: MeshTelemetries } {
  const settings = telemetrySettings(config, services);
  const isDefault = isDeepStrictEqual(settings, telemetrySettings({}, []));
  if (isDefault && resources.length === 0) return {};
  return { telemetry: { settings, resources: resources.map(meshTelemetry) } };
}

function telemetrySettings(config: MeshConfig, services: readonly ServicePorts[]): TelemetrySettings {
  const { defaultProviders = {}, accessLogFile, defaultConfig } = config;
  const configured = (config.extensionProviders ?? []).flatMap((each) => telemetryProvider(each, services) ?? []);
  const builtIn: readonly TelemetryProvider[] = [
    { name: prometheus, prometheus: {} },
    { name: defaultLog, envoyFileAccessLog: { path: accessLogFile || "/dev/stdout" } },
  ];
  const older = olderTracing(config, services);
  const named = [...configured, ...builtIn.filter(({ name }) => findProvider(configured, name) === undefined)];
  const {
    tracing = older.map(({ name }) => name),
    metrics = [prometheus],
    accessLogging = accessLogFile === "" ? [] : [defaultLog],
  } = defaultProviders;
  const settings = defaultConfig?.tracing;
  return {
    providers: [...named.map((provider) => withMeshFormat(provider, config)), ...older],
    tracingProviders: tracing,
    metricsProviders: metrics,
    accessLoggingProviders: accessLogging,
    ...(settings === undefined ? {} : { tracing: { ...settings, ...soundTagsOf(settings) } }),
    ...(config.disableEnvoyListenerLog === true ? { withoutListenerLog: true } : {}),
  };
}

/** Istio compares names of providers in any case. */
export function findProvider(providers: readonly TelemetryProvider[], name: string): TelemetryProvider | undefined {
  return providers.find((each) => each.name.toLowerCase() === name.toLowerCase());
}

/** Undefined for one that gives no telemetry, and one whose Service is not there. */
function telemetryProvider(
  { envoyExtAuthzHttp, envoyExtAuthzGrpc, ...provider }: ExtensionProvider,
  services: readonly ServicePorts[],
): TelemetryProvider | undefined {
  if (envoyExtAuthzHttp !== undefined || envoyExtAuthzGrpc !== undefined) return undefined;
  const { opentelemetry, zipkin, envoyOtelAls, envoyHttpAls, envoyTcpAls } = provider;
  const address = opentelemetry ?? zipkin ?? envoyOtelAls ?? envoyHttpAls ?? envoyTcpAls;
  if (address === undefined) return provider;
  const target = targetOf(providerHost(address.service), address.port, services);
  return target === undefined ? undefined : { ...provider, target };
}

function targetOf(host: string, port: number, services: readonly ServicePorts[]): ProviderTarget | undefined {
  const service = services.find(({ hostname }) => hostname === host);
  if (service !== undefined) return service.ports.some(({ number }) => number === port) ? { host, port } : undefined;
  return host.endsWith(`.svc.${clusterDomain}`) ? undefined : { host, port, isOutside: true };
}

/** Istio's older way to have traces: `enableTracing`, and an address for all. */
function olderTracing(
  { enableTracing, defaultConfig }: MeshConfig,
  services: readonly ServicePorts[],
): readonly TelemetryProvider[] {
  const [, service, port] = /^(.+):(\d{1,5})$/.exec(defaultConfig?.tracing?.zipkin?.address ?? "") ?? [];
  if (enableTracing !== true || service === undefined) return [];
  const zipkin = { service: serviceOfAddress(service), port: Number(port) };
  return [telemetryProvider({ name: olderTracer, zipkin }, services) ?? []].flat();
}

/** Istio's default address is `zipkin.istio-system:9411`: a Service by name and namespace. */
function serviceOfAddress(host: string): string {
  return /^[^.]+\.[^.]+$/.test(host) ? `${host}.svc.${clusterDomain}` : host.replace(/^\[(.*)\]$/, "$1");
}

/** The default log has the mesh's format where it has none of its own (Istio: telemetryAccessLog). */
function withMeshFormat(provider: TelemetryProvider, config: MeshConfig): TelemetryProvider {
  const { name, envoyFileAccessLog: file } = provider;
  const isDefault = name.toLowerCase() === defaultLog && file !== undefined;
  if (!isDefault || file.logFormat !== undefined || file.omitEmptyValues === true) return provider;
  const { accessLogFormat: format = "", accessLogEncoding } = config;
  if (accessLogEncoding !== "JSON" && format === "") return provider;
  const logFormat =
    accessLogEncoding === "JSON"
      ? { labels: (format === "" ? undefined : jsonLogFormat(format)) ?? {} }
      : { text: format };
  return { ...provider, envoyFileAccessLog: { ...file, logFormat } };
}

function meshTelemetry(resource: Telemetry): MeshTelemetry {
  const { tracing = [], metrics = [], accessLogging = [] } = resource.spec;
  const gateways = targetGateways(resource);
  return {
    ...policyScope(resource),
    ...(gateways === undefined ? {} : { gateways }),
    tracing: tracing.map((each) => ({ ...each, ...soundTagsOf(each) })),
    metrics: metrics.map(soundOverrides),
    accessLogging: accessLogging.filter(
      ({ filter }) => filter === undefined || expressionProblem(filter.expression ?? "") === undefined,
    ),
  };
}

function soundTagsOf({ customTags }: Pick<TracingSpec, "customTags">): Pick<TracingSpec, "customTags"> {
  return customTags === undefined ? {} : { customTags: soundTags(customTags) };
}

function soundOverrides(metrics: MetricsSpec): MetricsSpec {
  if (metrics.overrides === undefined) return metrics;
  const overrides = metrics.overrides.map((override) =>
    override.tagOverrides === undefined
      ? override
      : {
          ...override,
          tagOverrides: Object.fromEntries(
            Object.entries(override.tagOverrides).filter(
              ([, { operation, value = "" }]) => operation === "REMOVE" || expressionProblem(value) === undefined,
            ),
          ),
        },
  );
  return { ...metrics, overrides };
}
