// Series under Envoy's names: `<root>.<name>.<stat>` in the stats tree, `envoy_<root>_<stat>{<label>}` for Prometheus.
import type { Counter, Gauge, Labels, MetricRegistry } from "@tulle/telemetry";

export interface StatScope {
  /** Such as `cluster` or `http`. */
  readonly root: string;
  readonly name: string;
  /** Prometheus label that carries the name, such as `envoy_cluster_name`. */
  readonly label: string;
}

/**
 * What a table of names makes: a field for each. Such a table is the one place where a series is named; types and
 * series follow from it.
 */
export type Counters<T> = { readonly [field in keyof T]: Counter };
export type Gauges<T> = { readonly [field in keyof T]: Gauge };

/**
 * Series of `<root>.<name>.<stat>`; a trailing `_rq_2xx` becomes `_rq_xx` with the class as a label, and `_rq_200`
 * becomes `_rq` with the code, as Envoy's tags do.
 */
export function statDescription(
  scope: StatScope,
  stat: string,
): { readonly name: string; readonly labels: Labels; readonly statName: string } {
  const statName = `${scope.root}.${scope.name.replaceAll(":", "_")}.${stat}`;
  const settled = /^ssl\.(version|cipher|curve)s\.(.+)$/.exec(stat);
  if (settled !== null) {
    const labels = { [`envoy_ssl_${settled[1]}`]: settled[2]!, [scope.label]: scope.name };
    return { name: `envoy_${scope.root}_ssl_${settled[1]}s`, labels, statName };
  }
  const certificate = /^ssl\.certificate\.(.+)\.([a-z_]+)$/.exec(stat);
  if (certificate !== null) {
    const labels = { envoy_tls_certificate: certificate[1]!, [scope.label]: scope.name };
    return { name: `envoy_${scope.root}_ssl_certificate_${certificate[2]}`, labels, statName };
  }
  const code = /^(.*_rq)_(\d{3})$/.exec(stat);
  if (code !== null) {
    const labels = { envoy_response_code: code[2]!, [scope.label]: scope.name };
    return { name: `envoy_${scope.root}_${plain(code[1]!)}`, labels, statName };
  }
  const responseClass = /^(.*_rq)_([1-5])xx$/.exec(stat);
  if (responseClass === null) {
    return {
      name: `envoy_${scope.root}_${plain(stat)}`,
      labels: { [scope.label]: scope.name },
      statName,
    };
  }
  return {
    name: `envoy_${scope.root}_${plain(responseClass[1]!)}_xx`,
    labels: { envoy_response_code_class: responseClass[2]!, [scope.label]: scope.name },
    statName,
  };
}

/** As a name of Prometheus may be. */
function plain(stat: string): string {
  return stat.replaceAll(/\W/g, "_");
}

export function counterGroup<T extends Readonly<Record<string, string>>>(
  metrics: MetricRegistry,
  scope: StatScope,
  table: T,
): Counters<T> {
  return eachOf(table, (stat) => metrics.counter(statDescription(scope, stat)));
}

export function gaugeGroup<T extends Readonly<Record<string, string>>>(
  metrics: MetricRegistry,
  scope: StatScope,
  table: T,
): Gauges<T> {
  return eachOf(table, (stat) => metrics.gauge(statDescription(scope, stat)));
}

/** For series whose names are put together otherwise. */
export function eachOf<T extends Readonly<Record<string, string>>, S>(
  table: T,
  make: (stat: string) => S,
): { readonly [field in keyof T]: S } {
  return Object.fromEntries(Object.entries(table).map(([field, stat]) => [field, make(stat)])) as {
    readonly [field in keyof T]: S;
  };
}
