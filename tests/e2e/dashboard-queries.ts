// What existing dashboards and consoles ask of a Prometheus that scrapes a mesh: each metric by each of the labels that
// they filter by, and by each that they group by, one query each.

/** With a value that the traffic of prometheus.long.test.ts gives. */
type Filters = Readonly<Record<string, string>>;

interface Asked {
  readonly metrics: readonly string[];
  /** Each alone. */
  readonly filters: Filters;
  readonly groups: readonly string[];
  /** Counters are asked for by their rate, gauges as they are. */
  readonly kind: "counter" | "gauge" | "buckets";
}

const catalog = {
  reporter: "destination",
  source_workload: "webapp",
  source_workload_namespace: "shop",
  destination_workload: "catalog-v1",
  destination_workload_namespace: "shop",
  destination_service: "catalog.shop.svc.cluster.local",
  response_code: "200",
  connection_security_policy: "mutual_tls",
  destination_principal: "spiffe://cluster.local/ns/shop/sa/catalog",
  destination_cluster: "local",
};

const echo = {
  reporter: "source",
  source_workload: "tulle-ingressgateway",
  source_workload_namespace: "tulle-system",
  destination_workload: "echo",
  destination_workload_namespace: "shop",
  destination_service: "echo.shop.svc.cluster.local",
  connection_security_policy: "mutual_tls",
  destination_principal: "spiffe://cluster.local/ns/shop/sa/echo",
  destination_cluster: "local",
};

/** Messages of gRPC are counted while a call goes on, by who speaks to whom alone. */
function withoutOutcome(filters: Filters): Filters {
  const { response_code: _code, connection_security_policy: _policy, ...pair } = filters;
  return pair;
}

/** Kiali's graph groups by all of them at once. */
export const graphLabels = [
  "source_cluster",
  "source_workload_namespace",
  "source_workload",
  "source_canonical_service",
  "source_canonical_revision",
  "source_principal",
  "destination_cluster",
  "destination_service_namespace",
  "destination_service",
  "destination_service_name",
  "destination_workload_namespace",
  "destination_workload",
  "destination_canonical_service",
  "destination_canonical_revision",
  "destination_principal",
  "request_protocol",
  "response_code",
  "grpc_response_status",
  "response_flags",
  "connection_security_policy",
  "reporter",
];

const histograms = ["istio_request_duration_milliseconds", "istio_request_bytes", "istio_response_bytes"];
const tcpLabels = [...Object.keys(echo), "response_flags", "request_protocol"];
const own = { app: "istiod" };

const asked: readonly Asked[] = [
  { metrics: ["istio_requests_total"], filters: catalog, groups: graphLabels, kind: "counter" },
  {
    metrics: histograms.flatMap((name) => [`${name}_sum`, `${name}_count`]),
    filters: catalog,
    groups: Object.keys(catalog),
    kind: "counter",
  },
  {
    metrics: histograms.map((name) => `${name}_bucket`),
    filters: catalog,
    groups: Object.keys(catalog),
    kind: "buckets",
  },
  {
    metrics: ["istio_request_messages_total", "istio_response_messages_total"],
    filters: withoutOutcome(catalog),
    groups: Object.keys(withoutOutcome(catalog)),
    kind: "counter",
  },
  {
    metrics: ["istio_tcp_sent_bytes_total", "istio_tcp_received_bytes_total"],
    filters: echo,
    groups: tcpLabels,
    kind: "counter",
  },
  {
    metrics: ["istio_tcp_connections_opened_total", "istio_tcp_connections_closed_total"],
    filters: { ...echo, app: "echo", namespace: "shop" },
    groups: [...tcpLabels, "pod"],
    kind: "counter",
  },
  { metrics: ["istio_build"], filters: { component: "pilot" }, groups: ["component", "tag"], kind: "gauge" },
  { metrics: ["istio_build"], filters: { component: "proxy" }, groups: [], kind: "gauge" },
  { metrics: ["pilot_xds_pushes"], filters: { ...own, type: "cds" }, groups: ["type"], kind: "counter" },
  { metrics: ["pilot_total_xds_rejects"], filters: { ...own, type: "rds" }, groups: ["type"], kind: "counter" },
  { metrics: ["pilot_push_triggers"], filters: own, groups: ["type"], kind: "counter" },
  {
    metrics: ["pilot_proxy_convergence_time_sum", "pilot_proxy_convergence_time_count"],
    filters: own,
    groups: [],
    kind: "counter",
  },
  {
    metrics: [
      "pilot_proxy_convergence_time_bucket",
      "pilot_proxy_queue_time_bucket",
      "pilot_xds_push_time_bucket",
      "pilot_xds_config_size_bytes_bucket",
    ],
    filters: own,
    groups: [],
    kind: "buckets",
  },
  {
    metrics: ["pilot_xds", "pilot_services", "pilot_virt_services", "pilot_info"],
    filters: own,
    groups: [],
    kind: "gauge",
  },
  { metrics: ["pilot_total_xds_internal_errors"], filters: own, groups: [], kind: "counter" },
  {
    metrics: ["pilot_k8s_cfg_events", "pilot_k8s_reg_events"],
    filters: own,
    groups: ["event", "type"],
    kind: "counter",
  },
  { metrics: ["galley_validation_passed", "galley_validation_failed"], filters: own, groups: [], kind: "counter" },
  {
    metrics: ["envoy_cluster_upstream_cx_active"],
    filters: { cluster_name: "xds-grpc" },
    groups: ["cluster_name"],
    kind: "gauge",
  },
  {
    metrics: ["envoy_cluster_upstream_rq_total"],
    filters: { cluster_name: "xds-grpc" },
    groups: ["cluster_name"],
    kind: "counter",
  },
  {
    metrics: [
      "envoy_listener_downstream_cx_active",
      "envoy_server_uptime",
      "envoy_server_memory_allocated",
      "envoy_server_memory_heap_size",
    ],
    filters: { app: "webapp" },
    groups: ["pod"],
    kind: "gauge",
  },
  {
    metrics: ["process_cpu_seconds_total"],
    filters: { ...own, pod: "tulled" },
    groups: ["app", "pod"],
    kind: "counter",
  },
  {
    metrics: ["process_resident_memory_bytes", "process_virtual_memory_bytes", "process_open_fds"],
    filters: { ...own, pod: "tulled" },
    groups: ["app", "pod"],
    kind: "gauge",
  },
];

/** What the authorization server says of itself comes by its agent. */
const authorizationServer: Asked = {
  metrics: ["tulle_auth_requests_total"],
  filters: { app: "oauth2" },
  groups: ["endpoint", "status"],
  kind: "counter",
};

const window = "[1m]";

function query({ kind }: Asked, selector: string, by: readonly string[]): string {
  const labels = kind === "buckets" ? ["le", ...by] : by;
  const value = kind === "gauge" ? selector : `rate(${selector}${window})`;
  const sum = labels.length === 0 ? `sum(${value})` : `sum by (${labels.join(", ")}) (${value})`;
  return kind === "buckets" ? `histogram_quantile(0.9, ${sum})` : sum;
}

function* queriesOf(row: Asked): Generator<string> {
  for (const metric of row.metrics) {
    for (const [label, value] of Object.entries(row.filters)) yield query(row, `${metric}{${label}="${value}"}`, []);
    for (const label of row.groups) yield query(row, metric, [label]);
  }
}

export const dashboardQueries: readonly string[] = [
  ...[...asked, authorizationServer].flatMap((row) => [...queriesOf(row)]),
  `sum by (${graphLabels.join(", ")}) (rate(istio_requests_total{reporter="source"}${window}))`,
  // What is not known is said to be so: no series lacks a label that others are grouped by. In Istio, too, only gRPC
  // has the status of a call.
  ...graphLabels
    .filter((label) => label !== "grpc_response_status")
    .map((label) => `count(istio_requests_total) unless count(istio_requests_total{${label}=""})`),
];
