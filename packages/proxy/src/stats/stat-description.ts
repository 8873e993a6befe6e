// Series under Envoy's names: `<root>.<name>.<stat>` in the stats tree, `envoy_<root>_<stat>{<label>}` for Prometheus.
import type { Counter, Gauge, Labels, MetricRegistry } from "@tulle/telemetry";

export interface StatScope {
  /** Such as `cluster` or `http`. */
  readonly root: string;
  readonly name: string;
  /** Prometheus label that carries the name, such as `envoy_cluster_name`. */
  readonly label: string;
}

/** Series of `<root>.<name>.<stat>`; a trailing `_rq_2xx` becomes `_rq_xx` with the class as a label, as Envoy's tags do. */
export function statDescription(
  scope: StatScope,
  stat: string,
): { readonly name: string; readonly labels: Labels; readonly statName: string } {
  const statName = `${scope.root}.${scope.name.replaceAll(":", "_")}.${stat}`;
  const responseClass = /^(.*_rq)_([1-5])xx$/.exec(stat);
  if (responseClass === null) {
    return {
      name: `envoy_${scope.root}_${stat.replaceAll(".", "_")}`,
      labels: { [scope.label]: scope.name },
      statName,
    };
  }
  return {
    name: `envoy_${scope.root}_${responseClass[1]}_xx`,
    labels: { envoy_response_code_class: responseClass[2]!, [scope.label]: scope.name },
    statName,
  };
}

export function counterGroup<K extends string>(
  metrics: MetricRegistry,
  scope: StatScope,
  table: Readonly<Record<K, string>>,
): Record<K, Counter> {
  const group = {} as Record<K, Counter>;
  for (const field of Object.keys(table) as K[]) group[field] = metrics.counter(statDescription(scope, table[field]));
  return group;
}

export function gaugeGroup<K extends string>(
  metrics: MetricRegistry,
  scope: StatScope,
  table: Readonly<Record<K, string>>,
): Record<K, Gauge> {
  const group = {} as Record<K, Gauge>;
  for (const field of Object.keys(table) as K[]) group[field] = metrics.gauge(statDescription(scope, table[field]));
  return group;
}
