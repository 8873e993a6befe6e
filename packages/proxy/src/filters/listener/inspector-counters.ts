// Counters of an inspector; one set for all listeners, as in Envoy (`tls_inspector.tls_found`).
import type { Counter, MetricRegistry } from "@tulle/telemetry";

export function inspectorCounters<K extends string>(
  metrics: MetricRegistry,
  inspector: string,
  names: readonly K[],
): Record<K, Counter> {
  const counters = {} as Record<K, Counter>;
  for (const name of names) {
    counters[name] = metrics.counter({
      name: `envoy_${inspector}_${name}`,
      labels: {},
      statName: `${inspector}.${name}`,
    });
  }
  return counters;
}
