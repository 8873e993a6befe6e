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
export interface MetricsEnvironment {
  readonly settings: MetricExportSettings | undefined;
  readonly problems: readonly string[];
}

export function metricsEnvironment(environment: Environment, defaultServiceName: string): MetricsEnvironment {
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

/** The same for a proxy, whose collector is reached without TLS; no file is read for it. */
export function proxyMetricsEnvironment(environment: Environment): MetricsEnvironment {
  const names = Object.keys(environment).filter((name) => !name.endsWith("_CERTIFICATE"));
  const found = metricsEnvironment(Object.fromEntries(names.map((name) => [name, environment[name]])), "");
  if (found.settings?.endpoint.protocol !== "https:") return found;
  const problem = "OTEL_EXPORTER_OTLP_ENDPOINT is an https URL: proxies send metrics to http alone";
  return { settings: undefined, problems: [...found.problems, problem] };
}

function temporalityOf(environment: Environment, problems: string[]): Temporality {
  const asked = (environment[preference] || "cumulative").toLowerCase();
  if (Object.hasOwn(temporalitiesByPreference, asked)) return temporalitiesByPreference[asked]!;
  problems.push(`${preference} is none of ${Object.keys(temporalitiesByPreference).join(", ")}`);
  return "cumulative";
}
