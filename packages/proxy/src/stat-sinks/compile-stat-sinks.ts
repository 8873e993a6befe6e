// Bootstrap.stats_sinks: where metrics are sent to.
import { otlpEnvelope, otlpMethods } from "@tulle/telemetry";
import type { StatsSink } from "@tulle/xds/envoy/config/metrics/v3/stats_pb";
import {
  type SinkConfig,
  SinkConfigSchema,
} from "@tulle/xds/envoy/extensions/stat_sinks/open_telemetry/v3/open_telemetry_pb";
import { compileGrpcCollector, compileHttpCollector } from "../fields/compile-collector.ts";
import type { CompileScope } from "../fields/compile-scope.ts";
import type { Place, Problems } from "../fields/problems.ts";
import { decodeTypedConfig, typeUrlOf, unwrapTypedConfig } from "../fields/typed-config.ts";
import { detectResource, sdkResource } from "../tracing/resource-detectors.ts";
import type { GrpcCollector, HttpCollector } from "../upstream/batch-exporter.ts";
import type { StatSinkSettings } from "./open-telemetry-sink.ts";
import { openTelemetrySinkMessage } from "./stat-sink-fields.ts";

/** Sinks of other kinds are left out, and said so: metrics can be read from the admin interface. */
export function compileStatSinks(
  sinks: readonly StatsSink[],
  scope: CompileScope,
  place: Place,
  problems: Problems,
): readonly StatSinkSettings[] {
  return sinks.flatMap(({ name, configType }, index) => {
    const at = place.field("stats_sinks", index);
    const config = configType.case === "typedConfig" ? unwrapTypedConfig(configType.value) : undefined;
    if (config?.typeUrl !== typeUrlOf(SinkConfigSchema)) {
      problems.warning(at, `ignored: the sink '${name}' is not built; envoy.stat_sinks.open_telemetry is`);
      return [];
    }
    const own = at.field("typed_config");
    const message = decodeTypedConfig(openTelemetrySinkMessage, config, own, problems);
    const settings = message && compileOpenTelemetrySink(message, scope, own, problems);
    return settings === undefined ? [] : [settings];
  });
}

function compileOpenTelemetrySink(
  message: SinkConfig,
  scope: CompileScope,
  place: Place,
  problems: Problems,
): StatSinkSettings | undefined {
  if (message.customMetricConversions !== undefined) {
    problems.error(place.field("custom_metric_conversions"), "is not supported; the collector can rename metrics");
  }
  const collector = compileCollector(message, scope, place, problems);
  const detected = detectResource(message.resourceDetectors, scope, place, problems);
  if (collector === undefined) return undefined;
  const { name } = collector.cluster;
  if (scope.staticClusterNames?.has(name) === false) {
    problems.error(place, `unknown static cluster '${name}'`);
    return undefined;
  }
  return {
    collector,
    counters: message.reportCountersAsDeltas ? "delta" : "cumulative",
    histograms: message.reportHistogramsAsDeltas ? "delta" : "cumulative",
    emitsTags: message.emitTagsAsAttributes ?? true,
    usesTagExtractedName: message.useTagExtractedName ?? true,
    prefix: message.prefix === "" ? "" : `${message.prefix}.`,
    maxPointsPerRequest: message.maxDataPointsPerRequest,
    envelope: otlpEnvelope({ resource: [...new Map([...sdkResource, ...detected])] }),
  };
}

function compileCollector(
  { protocolSpecifier }: SinkConfig,
  scope: CompileScope,
  place: Place,
  problems: Problems,
): GrpcCollector | HttpCollector | undefined {
  switch (protocolSpecifier.case) {
    case "grpcService": {
      const at = place.field("grpc_service");
      return compileGrpcCollector(protocolSpecifier.value, otlpMethods.metrics, scope, at, problems);
    }
    case "httpService": {
      const at = place.field("http_service");
      return compileHttpCollector(protocolSpecifier.value, "application/x-protobuf", scope, at, problems);
    }
    default:
      problems.error(place, "a grpc_service or an http_service is required: metrics would lead nowhere");
      return undefined;
  }
}
