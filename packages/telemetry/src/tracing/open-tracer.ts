// A server's tracer as its environment asks for it, with its counters and what the log says of it.
import type { Logger } from "../log.ts";
import type { MetricRegistry } from "../metrics.ts";
import { ProcessTracer } from "./process-tracer.ts";
import { tracingEnvironment } from "./tracing-environment.ts";

export interface TracerOptions {
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Unless OTEL_SERVICE_NAME says another one. */
  readonly serviceName: string;
  readonly version: string;
  readonly metrics: MetricRegistry;
  readonly log: Logger;
}

/** Undefined: tracing is off. */
export function openTracer(options: TracerOptions): ProcessTracer | undefined {
  const { environment, serviceName, version, metrics, log } = options;
  const { settings, problems } = tracingEnvironment(environment, serviceName);
  for (const problem of problems) log.warning("tracing is not as the environment asks", { problem });
  if (settings === undefined) return undefined;
  const spans = (outcome: string, help: string) => metrics.counter({ name: `tulle_own_spans_${outcome}_total`, help });
  log.info("tracing", {
    service: settings.serviceName,
    collector: settings.endpoint.host,
    protocol: settings.protocol,
  });
  return new ProcessTracer(settings, version, {
    sent: spans("sent", "Spans of this process that a collector took."),
    dropped: spans("dropped", "Spans of this process that no collector took."),
  });
}
