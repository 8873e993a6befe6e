// What the environment says of a process's own spans: where they go, and which traces there are (OpenTelemetry's
// "Environment Variable Specification").
import {
  type Environment,
  type ExporterSettings,
  exporterSettings,
  milliseconds,
} from "../otlp/exporter-environment.ts";

export interface TracingSettings extends ExporterSettings {
  /** How long a span waits for others. */
  readonly flushIntervalMs: number;
  readonly sampler: Sampler;
}

export interface Sampler {
  /** A trace that somebody else began goes on as its parent decided. */
  readonly isParentBased: boolean;
  /** Share of the traces, 0 to 1. */
  readonly ratio: number;
}

export interface TracingEnvironment {
  /** Undefined: off. */
  readonly settings: TracingSettings | undefined;
  /** What was not understood, each a sentence; values are not repeated. */
  readonly problems: readonly string[];
}

/** OpenTelemetry's. */
const defaultFlushIntervalMs = 5000;

const samplers: Readonly<Record<string, { readonly isParentBased: boolean; readonly ratio: number | "argument" }>> = {
  always_on: { isParentBased: false, ratio: 1 },
  always_off: { isParentBased: false, ratio: 0 },
  traceidratio: { isParentBased: false, ratio: "argument" },
  parentbased_always_on: { isParentBased: true, ratio: 1 },
  parentbased_always_off: { isParentBased: true, ratio: 0 },
  parentbased_traceidratio: { isParentBased: true, ratio: "argument" },
};

export function tracingEnvironment(environment: Environment, defaultServiceName: string): TracingEnvironment {
  const problems: string[] = [];
  const exporter = exporterSettings(environment, "traces", defaultServiceName, problems);
  if (exporter === undefined) return { settings: undefined, problems };
  const delay = "OTEL_BSP_SCHEDULE_DELAY";
  const flushIntervalMs = milliseconds(environment[delay], delay, defaultFlushIntervalMs, problems);
  return { settings: { ...exporter, flushIntervalMs, sampler: samplerOf(environment, problems) }, problems };
}

function samplerOf(environment: Environment, problems: string[]): Sampler {
  const name = environment["OTEL_TRACES_SAMPLER"] || "parentbased_always_on";
  const sampler = Object.hasOwn(samplers, name) ? samplers[name] : undefined;
  if (sampler === undefined) {
    problems.push(`OTEL_TRACES_SAMPLER is none of ${Object.keys(samplers).join(", ")}`);
    return { isParentBased: true, ratio: 1 };
  }
  if (sampler.ratio !== "argument") return { isParentBased: sampler.isParentBased, ratio: sampler.ratio };
  const text = environment["OTEL_TRACES_SAMPLER_ARG"] || "1";
  const ratio = Number(text);
  if (ratio >= 0 && ratio <= 1) return { isParentBased: sampler.isParentBased, ratio };
  problems.push("OTEL_TRACES_SAMPLER_ARG is not a share from 0 to 1");
  return { isParentBased: sampler.isParentBased, ratio: 1 };
}
