// `HttpConnectionManager.tracing` as Istio sets it (pilot/pkg/networking/core/tracing.go), with the tracer of the
// provider.
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { type CustomTag, type OpenTelemetryProvider, withoutSecretTags, type ZipkinProvider } from "@tulle/config";
import type { TypedExtensionConfigSchema } from "@tulle/xds/envoy/config/core/v3/extension_pb";
import { OpenTelemetryConfigSchema } from "@tulle/xds/envoy/config/trace/v3/opentelemetry_pb";
import {
  ZipkinConfig_CollectorEndpointVersion,
  ZipkinConfig_TraceContextOption,
  ZipkinConfigSchema,
} from "@tulle/xds/envoy/config/trace/v3/zipkin_pb";
import {
  type HttpConnectionManager_Tracing,
  HttpConnectionManager_TracingSchema,
} from "@tulle/xds/envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager_pb";
import { EnvironmentResourceDetectorConfigSchema } from "@tulle/xds/envoy/extensions/tracers/opentelemetry/resource_detectors/v3/environment_resource_detector_pb";
import { CustomTagSchema } from "@tulle/xds/envoy/type/tracing/v3/custom_tag_pb";
import type { ListenerTracing } from "../scope/workload-telemetry.ts";
import type { ProviderTarget } from "../snapshot/telemetry.ts";
import { pack } from "./messages.ts";
import { grpcServiceOf, httpServiceOf } from "./provider-services.ts";

type TagInit = MessageInitShape<typeof CustomTagSchema>;

/** What policies on trial have decided. Without one the tags have no value, and stand in no span. */
const dryRunTags: readonly TagInit[] = ["allow", "deny"].flatMap((action) =>
  [
    ["name", "effective_policy_id"],
    ["result", "engine_result"],
  ].map(([what, key]) => ({
    tag: `istio.authorization.dry_run.${action}_policy.${what}`,
    type: {
      case: "metadata",
      value: {
        kind: { kind: { case: "request", value: {} } },
        metadataKey: {
          key: "envoy.filters.http.rbac",
          path: [{ segment: { case: "key", value: `istio_dry_run_${action}_shadow_${key}` } }],
        },
      },
    },
  })),
);

/** `redactedParameters`: of proxies that redact nothing by themselves. */
export function tracing(
  settings: ListenerTracing,
  placement: "sidecar" | "gateway",
  redactedParameters: readonly string[] = [],
): HttpConnectionManager_Tracing {
  const { provider, serviceName, samplingPercentage, customTags, istioTags, maxPathTagLength } = settings;
  const { opentelemetry, zipkin, target } = provider;
  const tracer =
    opentelemetry === undefined
      ? zipkinTracer(zipkin!, target!)
      : openTelemetryTracer(opentelemetry, target!, serviceName);
  const tags = [
    ...Object.entries(istioTags ?? {}).map(([name, value]) => customTag(name, { literal: { value } })),
    ...(istioTags === undefined ? [] : dryRunTags),
    ...Object.entries(customTags).map(([name, tag]) => customTag(name, withoutSecrets(tag, redactedParameters))),
  ].sort((a, b) => (a.tag! < b.tag! ? -1 : 1));
  return create(HttpConnectionManager_TracingSchema, {
    clientSampling: { value: 100 },
    randomSampling: { value: samplingPercentage },
    overallSampling: { value: 100 },
    ...(maxPathTagLength === undefined ? {} : { maxPathTagLength }),
    customTags: tags,
    provider: tracer,
    // A gateway's tries are spans of their own (Istio: PILOT_SPAWN_UPSTREAM_SPAN_FOR_GATEWAY).
    ...(placement === "gateway" ? { spawnUpstreamSpan: true } : {}),
    noContextPropagation: settings.withoutPropagation === true,
  });
}

type Tracer = NonNullable<MessageInitShape<typeof HttpConnectionManager_TracingSchema>["provider"]>;

function openTelemetryTracer(
  { http, grpc, resourceDetectors }: OpenTelemetryProvider,
  target: ProviderTarget,
  serviceName: string,
): Tracer {
  const environment: MessageInitShape<typeof TypedExtensionConfigSchema> = {
    name: "envoy.tracers.opentelemetry.resource_detectors.environment",
    typedConfig: pack(EnvironmentResourceDetectorConfigSchema, {}),
  };
  const value = pack(OpenTelemetryConfigSchema, {
    ...(http === undefined
      ? { grpcService: grpcServiceOf(target, grpc) }
      : { httpService: httpServiceOf(target, http) }),
    serviceName,
    resourceDetectors: resourceDetectors?.environment === undefined ? [] : [environment],
  });
  return { name: "envoy.tracers.opentelemetry", configType: { case: "typedConfig", value } };
}

function zipkinTracer(provider: ZipkinProvider, target: ProviderTarget): Tracer {
  const { path = "/api/v2/spans", traceContextOption = "USE_B3", enable64bitTraceId = false, ...settings } = provider;
  const value = pack(ZipkinConfigSchema, {
    collectorEndpointVersion: ZipkinConfig_CollectorEndpointVersion.HTTP_JSON,
    collectorService: httpServiceOf(target, { ...settings, path }),
    traceId128bit: !enable64bitTraceId,
    sharedSpanContext: false,
    traceContextOption: ZipkinConfig_TraceContextOption[traceContextOption],
  });
  return { name: "envoy.tracers.zipkin", configType: { case: "typedConfig", value } };
}

/** What Envoy would write out: credentials and addresses go as a whole. */
function withoutSecrets(tag: CustomTag, parameters: readonly string[]): CustomTag {
  const { header: { name = "" } = {}, formatter: { value = "" } = {} } = tag;
  const asked = tag.header === undefined ? value : `%REQ(${name})%`;
  const shown = withoutSecretTags(asked, parameters);
  return shown === asked ? tag : { formatter: { value: shown } };
}

function customTag(tag: string, { literal, environment, header, formatter }: CustomTag): TagInit {
  if (literal !== undefined) return { tag, type: { case: "literal", value: { value: literal.value ?? "" } } };
  if (formatter !== undefined) return { tag, type: { case: "value", value: formatter.value ?? "" } };
  const { name = "", defaultValue = "" } = (environment ?? header)!;
  return environment === undefined
    ? { tag, type: { case: "requestHeader", value: { name, defaultValue } } }
    : { tag, type: { case: "environment", value: { name, defaultValue } } };
}
