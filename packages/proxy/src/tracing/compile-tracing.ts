// HttpConnectionManager.tracing: which requests are traced, what a span is told, and who is sent it.
import { type Counter, type MetricRegistry, otlpEnvelope, otlpMethods } from "@tulle/telemetry";
import { type OpenTelemetryConfig, OpenTelemetryConfigSchema } from "@tulle/xds/envoy/config/trace/v3/opentelemetry_pb";
import {
  type ZipkinConfig,
  ZipkinConfig_CollectorEndpointVersion as EndpointVersion,
  ZipkinConfig_TraceContextOption as ContextOption,
  ZipkinConfigSchema,
} from "@tulle/xds/envoy/config/trace/v3/zipkin_pb";
import type { HttpConnectionManager } from "@tulle/xds/envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager_pb";
import { UuidRequestIdConfigSchema } from "@tulle/xds/envoy/extensions/request_id/uuid/v3/uuid_pb";
import type { Percent } from "@tulle/xds/envoy/type/v3/percent_pb";
import { compileGrpcCollector, compileHttpCollector } from "../fields/compile-collector.ts";
import type { CompileScope } from "../fields/compile-scope.ts";
import type { Place, Problems } from "../fields/problems.ts";
import { decodeTypedConfig, typeUrlOf, unwrapTypedConfig, type TypedConfig } from "../fields/typed-config.ts";
import { productVersion } from "../runtime/product-version.ts";
import { eachOf, statDescription } from "../stats/stat-description.ts";
import {
  defaultExportLimits,
  type ExportStats,
  type GrpcCollector,
  type HttpCollector,
} from "../upstream/batch-exporter.ts";
import { compileCustomTags } from "./custom-tags.ts";
import { compileOperation } from "./compile-route-tracing.ts";
import { OtlpTracer } from "./otlp-tracer.ts";
import { detectResource, sdkResource } from "./resource-detectors.ts";
import { compileSampler } from "./samplers.ts";
import type { RequestIdRules } from "./sampling.ts";
import { openTelemetryMessage, requestIdMessage, zipkinMessage } from "./tracing-fields.ts";
import { TracingObserver } from "./tracing-observer.ts";
import type { Tracer } from "./tracer.ts";
import type { ZipkinFormat } from "./zipkin-format.ts";
import { ZipkinJson } from "./zipkin-json.ts";
import { ZipkinProtobuf } from "./zipkin-protobuf.ts";
import { ZipkinTracer } from "./zipkin-tracer.ts";

/** What of a listener's build tracing needs. */
interface TracingBuild {
  readonly scope: CompileScope;
  readonly problems: Problems;
  readonly isOutbound: boolean;
  readonly clusterNames: Set<string>;
}

const defaultMaxPathTagLength = 256;

/** Undefined: nothing is traced, or there is an error. */
export function compileTracing(
  message: HttpConnectionManager,
  build: TracingBuild,
  place: Place,
): TracingObserver | undefined {
  const { tracing } = message;
  if (tracing?.provider === undefined) return undefined;
  const { scope, problems } = build;
  const { redactedNames } = scope;
  const at = place.field("tracing");
  const { configType } = tracing.provider;
  const provider = configType.case === "typedConfig" ? unwrapTypedConfig(configType.value) : undefined;
  const tracer = compileProvider(provider, tracing.provider.name, build, at.field("provider"));
  const tags = compileCustomTags(tracing.customTags, redactedNames, scope, at, problems);
  const operation = compileOperation(tracing.operation, redactedNames, scope, at.field("operation"), problems);
  const upstreamOperation = compileOperation(
    tracing.upstreamOperation,
    redactedNames,
    scope,
    at.field("upstream_operation"),
    problems,
  );
  const requestId = requestIdRules(message, problems, place.field("request_id_extension"));
  if (tracer === undefined) return undefined;
  return new TracingObserver({
    tracer,
    shares: {
      client: partsOf(tracing.clientSampling),
      random: partsOf(tracing.randomSampling),
      overall: partsOf(tracing.overallSampling),
    },
    requestId,
    isEgress: build.isOutbound,
    spawnsTrySpans: tracing.spawnUpstreamSpan ?? false,
    isVerbose: tracing.verbose,
    passesContextOn: !tracing.noContextPropagation,
    operation,
    upstreamOperation,
    tags,
    tagSettings: {
      nodeId: scope.node.id,
      zone: scope.node.zone,
      maxPathTagLength: tracing.maxPathTagLength ?? defaultMaxPathTagLength,
      redactedNames,
    },
    random: scope.random,
    clock: scope.clock,
    reasons: reasonCounters(scope.metrics, message.statPrefix),
  });
}

/** All where nothing is said; ids are drawn in parts of ten thousand. */
function partsOf(percent: Percent | undefined): number {
  return percent === undefined ? 10_000 : Math.round(percent.value * 100);
}

function requestIdRules(
  { requestIdExtension }: HttpConnectionManager,
  problems: Problems,
  place: Place,
): RequestIdRules {
  const config = unwrapTypedConfig(requestIdExtension?.typedConfig);
  const known =
    config?.typeUrl === typeUrlOf(UuidRequestIdConfigSchema)
      ? decodeTypedConfig(requestIdMessage, config, place.field("typed_config"), problems)
      : undefined;
  return { packsReason: known?.packTraceReason ?? true, samplesById: known?.useRequestIdForTraceSampling ?? true };
}

function reasonCounters(metrics: MetricRegistry, statPrefix: string) {
  const scope = { root: "http", name: statPrefix, label: "envoy_http_conn_manager_prefix" };
  const table = {
    not_traceable: "tracing.not_traceable",
    sampling: "tracing.random_sampling",
    service_forced: "tracing.service_forced",
    client_forced: "tracing.client_enabled",
  };
  return eachOf(table, (stat) => metrics.counter(statDescription(scope, stat)));
}

function compileProvider(
  config: TypedConfig | undefined,
  name: string,
  build: TracingBuild,
  place: Place,
): Tracer | undefined {
  const at = place.field("typed_config");
  switch (config?.typeUrl) {
    case typeUrlOf(OpenTelemetryConfigSchema): {
      const message = decodeTypedConfig(openTelemetryMessage, config, at, build.problems);
      return message && compileOpenTelemetry(message, build, at);
    }
    case typeUrlOf(ZipkinConfigSchema): {
      const message = decodeTypedConfig(zipkinMessage, config, at, build.problems);
      return message && compileZipkin(message, build, at);
    }
    default: {
      const type = config?.typeUrl.replace(/^.*\//, "") ?? "";
      build.problems.error(place, `Didn't find a registered implementation for '${name}' with type URL: '${type}'`);
      return undefined;
    }
  }
}

function compileOpenTelemetry(message: OpenTelemetryConfig, build: TracingBuild, place: Place): Tracer | undefined {
  const { scope, problems } = build;
  if (message.exporter !== undefined) problems.error(place.field("exporter"), "is not supported");
  const sampler = message.sampler && compileSampler(message.sampler, place.field("sampler"), problems);
  const resource = resourceOf(message, build, place);
  const collector = otlpCollector(message, build, place);
  if (collector === undefined) return undefined;
  build.clusterNames.add(collector.cluster.name);
  const hasScope = message.setInstrumentationScope ?? true;
  const origin = { resource, scope: hasScope ? { name: "tulle", version: productVersion } : undefined };
  const limits = { ...defaultExportLimits, maxItems: message.maxCacheSize ?? defaultExportLimits.maxItems };
  const key = JSON.stringify(["spans", keyOf(collector), origin, limits.maxItems]);
  const exporter = scope.exporters.get(key, () => ({
    items: "spans",
    collector,
    limits: { ...limits, batchItems: Math.min(limits.batchItems, limits.maxItems) },
    envelope: otlpEnvelope(origin),
    stats: otlpStats(scope.metrics),
  }));
  return new OtlpTracer(exporter, sampler);
}

function otlpCollector(
  { grpcService, httpService }: OpenTelemetryConfig,
  build: TracingBuild,
  place: Place,
): GrpcCollector | HttpCollector | undefined {
  if (grpcService !== undefined && httpService !== undefined) {
    build.problems.error(place, "OpenTelemetry Tracer cannot have both gRPC and HTTP exporters configured");
    return undefined;
  }
  if (grpcService !== undefined) {
    return compileGrpcCollector(
      grpcService,
      otlpMethods.traces,
      build.scope,
      place.field("grpc_service"),
      build.problems,
    );
  }
  if (httpService !== undefined) {
    return compileHttpCollector(
      httpService,
      "application/x-protobuf",
      build.scope,
      place.field("http_service"),
      build.problems,
    );
  }
  build.problems.error(place, "a grpc_service or an http_service is required: spans would lead nowhere");
  return undefined;
}

/** What tells one collector from another: names and not slots. */
function keyOf(collector: GrpcCollector | HttpCollector): unknown {
  return { ...collector, cluster: collector.cluster.name };
}

/** Envoy: its resource detectors, and `service.name`. */
function resourceOf(
  message: OpenTelemetryConfig,
  build: TracingBuild,
  place: Place,
): readonly (readonly [string, string])[] {
  const resource = new Map<string, string>();
  if (message.setTelemetrySdkResourceAttributes ?? true) {
    for (const [key, value] of sdkResource) resource.set(key, value);
  }
  if (message.setServiceNameResourceAttribute ?? true) {
    resource.set("service.name", message.serviceName === "" ? "unknown_service:envoy" : message.serviceName);
  }
  for (const [key, value] of detectResource(message.resourceDetectors, build.scope, place, build.problems)) {
    resource.set(key, value);
  }
  return [...resource];
}

function compileZipkin(message: ZipkinConfig, build: TracingBuild, place: Place): Tracer | undefined {
  const { scope, problems } = build;
  const makeFormat = zipkinFormats[message.collectorEndpointVersion];
  if (makeFormat === undefined) {
    problems.error(place.field("collector_endpoint_version"), "HTTP_JSON and HTTP_PROTO are supported");
    return undefined;
  }
  const format = makeFormat(scope.node.cluster);
  const collector = zipkinCollector(message, format.contentType, build, place);
  if (collector === undefined) return undefined;
  build.clusterNames.add(collector.cluster.name);
  const exporter = scope.exporters.get(JSON.stringify(["zipkin", keyOf(collector)]), () => ({
    items: "spans",
    collector,
    limits: { ...defaultExportLimits, batchItems: zipkinBatchItems },
    envelope: (items) => format.envelope(items),
    stats: zipkinStats(scope.metrics),
  }));
  const settings = {
    has128BitIds: message.traceId128bit,
    sharesSpans: message.sharedSpanContext ?? true,
    knowsTraceParent: message.traceContextOption === ContextOption.USE_B3_WITH_W3C_PROPAGATION,
  };
  return new ZipkinTracer(exporter, settings, format);
}

/** By the name of the service, node.cluster of the bootstrap. Their content types tell exporters apart. */
const zipkinFormats: Readonly<Partial<Record<EndpointVersion, (serviceName: string) => ZipkinFormat>>> = {
  [EndpointVersion.HTTP_JSON]: (serviceName) => new ZipkinJson(serviceName),
  [EndpointVersion.HTTP_PROTO]: (serviceName) => new ZipkinProtobuf(serviceName),
};

/** Envoy: tracing.zipkin.min_flush_spans. */
const zipkinBatchItems = 5;
const zipkinTimeoutMs = 5000;

function zipkinCollector(
  message: ZipkinConfig,
  contentType: string,
  build: TracingBuild,
  place: Place,
): HttpCollector | undefined {
  const { collectorService, collectorCluster, collectorEndpoint, collectorHostname } = message;
  if (collectorService !== undefined) {
    return compileHttpCollector(
      collectorService,
      contentType,
      build.scope,
      place.field("collector_service"),
      build.problems,
    );
  }
  if (collectorCluster === "" || collectorEndpoint === "") {
    build.problems.error(place, "collector_cluster and collector_endpoint must be specified");
    return undefined;
  }
  return {
    protocol: "http",
    cluster: build.scope.clusterSlot(collectorCluster),
    scheme: "http",
    authority: collectorHostname === "" ? collectorCluster : collectorHostname,
    path: collectorEndpoint,
    headers: [["content-type", contentType]],
    timeoutMs: zipkinTimeoutMs,
  };
}

function otlpStats(metrics: MetricRegistry): ExportStats {
  const table = { sent: "spans_sent", dropped: "spans_dropped", timerFlushed: "timer_flushed" };
  return eachOf(table, (stat) => tracingCounter(metrics, "opentelemetry", stat));
}

function zipkinStats(metrics: MetricRegistry): ExportStats {
  const of = (stat: string): Counter => tracingCounter(metrics, "zipkin", stat);
  return {
    sent: of("spans_sent"),
    dropped: of("spans_dropped"),
    timerFlushed: of("timer_flushed"),
    outcomes: {
      sent: of("reports_sent"),
      refused: of("reports_dropped"),
      failed: of("reports_failed"),
      no_cluster: of("reports_skipped_no_cluster"),
    },
  };
}

function tracingCounter(metrics: MetricRegistry, tracer: string, stat: string): Counter {
  return metrics.counter({ name: `envoy_tracing_${tracer}_${stat}`, statName: `tracing.${tracer}.${stat}` });
}
