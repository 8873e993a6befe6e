// What the environment says of a process's own metrics: where they go and how often (OpenTelemetry's "Environment
// Variable Specification", "Metrics SDK").
import { type Environment, type ExporterSettings, exporterSettings, milliseconds } from "./exporter-environment.ts";
import type { Temporality } from "./metric-item.ts";

export interface MetricExportSettings extends ExporterSettings {
  readonly intervalMs: number;
  /** As long as the requests of one time may take. */
  readonly exportTimeoutMs: number;
  /** Of counters and histograms. */
  readonly temporality: Temporality;
}

const defaultIntervalMs = 60_000;
const defaultExportTimeoutMs = 30_000;
const preference = "OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE";

/** `lowmemory` differs from `delta` in instruments that there are none of here. */
const temporalitiesByPreference: Readonly<Record<string, Temporality>> = {
  cumulative: "cumulative",
  delta: "delta",
  lowmemory: "delta",
};

/** `settings` undefined: off. `problems`: what was not understood, each a sentence; values are not repeated. */
export function metricsEnvironment(
  environment: Environment,
  defaultServiceName: string,
): { readonly settings: MetricExportSettings | undefined; readonly problems: readonly string[] } {
  const problems: string[] = [];
  const exporter = exporterSettings(environment, "metrics", defaultServiceName, problems);
  if (exporter === undefined) return { settings: undefined, problems };
  const time = (name: string, defaultMs: number): number => milliseconds(environment[name], name, defaultMs, problems);
  const settings = {
    ...exporter,
    intervalMs: time("OTEL_METRIC_EXPORT_INTERVAL", defaultIntervalMs),
    exportTimeoutMs: time("OTEL_METRIC_EXPORT_TIMEOUT", defaultExportTimeoutMs),
    temporality: temporalityOf(environment, problems),
  };
  return { settings, problems };
}

function temporalityOf(environment: Environment, problems: string[]): Temporality {
  const asked = (environment[preference] || "cumulative").toLowerCase();
  if (Object.hasOwn(temporalitiesByPreference, asked)) return temporalitiesByPreference[asked]!;
  problems.push(`${preference} is none of ${Object.keys(temporalitiesByPreference).join(", ")}`);
  return "cumulative";
}
