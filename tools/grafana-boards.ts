// Dashboards of Grafana over the metrics of a mesh, made of the queries below: `npm run generate:grafana` writes them
// to deploy/grafana/, where Grafana's provisioning finds them.
import { mkdir, writeFile } from "node:fs/promises";
import path from "node:path";
import { fileURLToPath } from "node:url";

export const boardsFolder = path.resolve(import.meta.dirname, "../deploy/grafana");

interface Panel {
  readonly title: string;
  /** Grafana's name of it (`reqps`, `ms`, `bytes`, …). */
  readonly unit: string;
  readonly queries: readonly (readonly [legend: string, expression: string])[];
}

interface Board {
  readonly name: string;
  readonly title: string;
  /** Variables of the board, by the query that lists their values. */
  readonly variables: Readonly<Record<string, string>>;
  readonly panels: readonly Panel[];
}

const rate = (selector: string): string => `rate(${selector}[$__rate_interval])`;
const sumBy = (labels: string, expression: string): string => `sum by (${labels}) (${expression})`;
const quantile = (share: number, labels: string, selector: string): string =>
  `histogram_quantile(${share}, ${sumBy(labels === "" ? "le" : `le, ${labels}`, rate(selector))})`;

const failed = (filter: string, by: string): string =>
  `${sumBy(by, rate(`istio_requests_total{${filter}, response_code=~"5.."}`))} / ${sumBy(by, rate(`istio_requests_total{${filter}}`))}`;

/** The same four questions of whatever the filter chooses. */
function requestPanels(filter: string, by: string): readonly Panel[] {
  const legend = `{{${by}}}`;
  return [
    { title: "Requests", unit: "reqps", queries: [[legend, sumBy(by, rate(`istio_requests_total{${filter}}`))]] },
    {
      title: "By response code",
      unit: "reqps",
      queries: [
        [
          "{{response_code}} {{response_flags}}",
          sumBy("response_code, response_flags", rate(`istio_requests_total{${filter}}`)),
        ],
      ],
    },
    { title: "Share of requests that failed (5xx)", unit: "percentunit", queries: [[legend, failed(filter, by)]] },
    {
      title: "Duration",
      unit: "ms",
      queries: [0.5, 0.9, 0.99].map(
        (share) =>
          [
            `p${share * 100} ${legend}`,
            quantile(share, by, `istio_request_duration_milliseconds_bucket{${filter}}`),
          ] as const,
      ),
    },
    {
      title: "Size of answers, p90",
      unit: "bytes",
      queries: [[legend, quantile(0.9, by, `istio_response_bytes_bucket{${filter}}`)]],
    },
    {
      title: "Encrypted",
      unit: "reqps",
      queries: [
        [
          "{{connection_security_policy}}",
          sumBy("connection_security_policy", rate(`istio_requests_total{${filter}}`)),
        ],
      ],
    },
  ];
}

const tcpPanels = (filter: string, by: string): readonly Panel[] => [
  {
    title: "TCP bytes",
    unit: "Bps",
    queries: [
      [`sent {{${by}}}`, sumBy(by, rate(`istio_tcp_sent_bytes_total{${filter}}`))],
      [`received {{${by}}}`, sumBy(by, rate(`istio_tcp_received_bytes_total{${filter}}`))],
    ],
  },
  {
    title: "TCP connections opened",
    unit: "cps",
    queries: [[`{{${by}}}`, sumBy(by, rate(`istio_tcp_connections_opened_total{${filter}}`))]],
  },
];

const plane = 'app="istiod"';
const counter = (title: string, name: string, by: string): Panel => ({
  title,
  unit: "ops",
  queries: [
    [
      by
        .split(", ")
        .map((label) => `{{${label}}}`)
        .join(" "),
      sumBy(by, rate(`${name}{${plane}}`)),
    ],
  ],
});
const time = (title: string, name: string): Panel => ({
  title,
  unit: "s",
  queries: [0.5, 0.99].map((share) => [`p${share * 100}`, quantile(share, "", `${name}_bucket{${plane}}`)] as const),
});

export const boards: readonly Board[] = [
  {
    name: "mesh",
    title: "Tulle: mesh",
    variables: {},
    panels: [
      ...requestPanels('reporter="destination"', "destination_service"),
      ...tcpPanels('reporter="destination"', "destination_service"),
      { title: "Versions", unit: "none", queries: [["{{component}} {{tag}}", sumBy("component, tag", "istio_build")]] },
    ],
  },
  {
    name: "service",
    title: "Tulle: service",
    variables: { service: "label_values(istio_requests_total, destination_service)" },
    panels: requestPanels('reporter="destination", destination_service=~"$service"', "source_workload"),
  },
  {
    name: "workload",
    title: "Tulle: workload",
    variables: {
      namespace: "label_values(istio_requests_total, destination_workload_namespace)",
      workload:
        'label_values(istio_requests_total{destination_workload_namespace=~"$namespace"}, destination_workload)',
    },
    panels: requestPanels(
      'reporter="destination", destination_workload_namespace=~"$namespace", destination_workload=~"$workload"',
      "source_workload",
    ),
  },
  {
    name: "control-plane",
    title: "Tulle: control plane",
    variables: {},
    panels: [
      {
        title: "Proxies, Services, VirtualServices",
        unit: "none",
        queries: ["pilot_xds", "pilot_services", "pilot_virt_services"].map(
          (name) => [name, `sum(${name}{${plane}})`] as const,
        ),
      },
      time("From a change to all of a proxy's answers", "pilot_proxy_convergence_time"),
      time("In the queue", "pilot_proxy_queue_time"),
      time("Making a type's resources", "pilot_xds_push_time"),
      counter("Responses", "pilot_xds_pushes", "type"),
      counter("Why pushes were made", "pilot_push_triggers", "type"),
      counter("Refused by proxies", "pilot_total_xds_rejects", "type"),
      counter("Changes of configuration", "pilot_k8s_cfg_events", "type, event"),
      counter("Changes of Services, endpoints and pods", "pilot_k8s_reg_events", "type, event"),
      counter("Resources refused", "galley_validation_failed", "resource"),
      {
        title: "CPU",
        unit: "percentunit",
        queries: [["CPU", sumBy("pod", rate(`process_cpu_seconds_total{${plane}}`))]],
      },
      {
        title: "Memory",
        unit: "bytes",
        queries: [["resident", `sum by (pod) (process_resident_memory_bytes{${plane}})`]],
      },
      { title: "File descriptors", unit: "none", queries: [["open", `sum by (pod) (process_open_fds{${plane}})`]] },
      {
        title: "Certificates",
        unit: "ops",
        queries: [["issued", `sum(${rate(`citadel_server_success_cert_issuance_count{${plane}}`)})`]],
      },
    ],
  },
  {
    name: "authorization-server",
    title: "Tulle: authorization server",
    variables: {},
    panels: [
      {
        title: "Requests",
        unit: "reqps",
        queries: [["{{endpoint}} {{status}}", sumBy("endpoint, status", rate("tulle_auth_requests_total"))]],
      },
      {
        title: "Duration, p99",
        unit: "ms",
        queries: [["{{endpoint}}", quantile(0.99, "endpoint", "tulle_auth_request_duration_milliseconds_bucket")]],
      },
      { title: "Codes issued", unit: "ops", queries: [["codes", `sum(${rate("tulle_auth_codes_issued_total")})`]] },
    ],
  },
  {
    name: "proxy",
    title: "Tulle: proxies",
    variables: { pod: "label_values(envoy_server_uptime, pod)" },
    panels: [
      {
        title: "CPU of the process",
        unit: "percentunit",
        queries: [["{{pod}}", sumBy("pod", rate('istio_agent_process_cpu_seconds_total{pod=~"$pod"}'))]],
      },
      {
        title: "Memory of the process",
        unit: "bytes",
        queries: [["{{pod}}", 'sum by (pod) (istio_agent_process_resident_memory_bytes{pod=~"$pod"})']],
      },
      {
        title: "Memory allocated",
        unit: "bytes",
        queries: [["{{pod}}", 'sum by (pod) (envoy_server_memory_allocated{pod=~"$pod"})']],
      },
      {
        title: "Connections of clients",
        unit: "none",
        queries: [["{{pod}}", 'sum by (pod) (envoy_listener_downstream_cx_active{pod=~"$pod"})']],
      },
      {
        title: "Connections to clusters",
        unit: "none",
        queries: [["{{cluster_name}}", 'sum by (cluster_name) (envoy_cluster_upstream_cx_active{pod=~"$pod"})']],
      },
      {
        title: "Scrapes without all metrics",
        unit: "ops",
        queries: [["{{pod}} {{type}}", sumBy("pod, type", rate('istio_agent_scrape_failures_total{pod=~"$pod"}'))]],
      },
    ],
  },
];

const datasource = { type: "prometheus", uid: "${datasource}" };
const columns = 2;
const panelHeight = 8;
const boardWidth = 24;

function variable(name: string, query: string): object {
  return {
    name,
    type: "query",
    datasource,
    query: { query, refId: name },
    refresh: 2,
    multi: true,
    includeAll: true,
    allValue: ".*",
    current: { text: "All", value: "$__all" },
  };
}

/** Grafana's model of a dashboard (schemaVersion 39). */
export function dashboard({ name, title, variables, panels }: Board): object {
  const width = boardWidth / columns;
  return {
    uid: `tulle-${name}`,
    title,
    tags: ["tulle"],
    schemaVersion: 39,
    version: 1,
    editable: true,
    refresh: "15s",
    time: { from: "now-30m", to: "now" },
    templating: {
      list: [
        { name: "datasource", type: "datasource", query: "prometheus", label: "Prometheus" },
        ...Object.entries(variables).map(([each, query]) => variable(each, query)),
      ],
    },
    panels: panels.map((panel, index) => ({
      id: index + 1,
      type: "timeseries",
      title: panel.title,
      datasource,
      gridPos: { x: (index % columns) * width, y: Math.floor(index / columns) * panelHeight, w: width, h: panelHeight },
      fieldConfig: { defaults: { unit: panel.unit, min: 0 }, overrides: [] },
      options: { legend: { displayMode: "list", placement: "bottom" }, tooltip: { mode: "multi" } },
      targets: panel.queries.map(([legendFormat, expr], at) => ({
        refId: String.fromCodePoint(65 + at),
        datasource,
        expr,
        legendFormat,
      })),
    })),
  };
}

export function boardText(board: Board): string {
  return `${JSON.stringify(dashboard(board), undefined, 2)}\n`;
}

/** As Grafana asks, for any value of the variables. */
export const boardQueries: readonly string[] = boards.flatMap(({ panels }) =>
  panels.flatMap(({ queries }) =>
    queries.map(([, expression]) =>
      expression.replaceAll("$__rate_interval", "1m").replaceAll(/\$(service|namespace|workload|pod)/g, ".*"),
    ),
  ),
);

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  await mkdir(boardsFolder, { recursive: true });
  for (const board of boards) await writeFile(path.join(boardsFolder, `${board.name}.json`), boardText(board));
}
