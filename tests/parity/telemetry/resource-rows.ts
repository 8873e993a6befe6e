// What each field of Telemetry does.
import { type Seen, sidesOf, spanSides, tagOf, type TelemetryRow } from "./telemetry-row.ts";
import { telemetry } from "./telemetry-stage.ts";

/** Nothing is traced that nobody asks for, and the log `told` says which sides a call has passed. */
export const standardMesh = {
  defaultConfig: { tracing: { sampling: 0 } },
  extensionProviders: [
    {
      name: "collector",
      opentelemetry: { service: "collector.observability.svc.cluster.local", port: 4318, http: { path: "/v1/traces" } },
    },
    {
      name: "told",
      envoyFileAccessLog: { path: "/logs/told", logFormat: { text: "%REQ(X-ROW)% %UPSTREAM_CLUSTER_RAW%" } },
    },
  ],
};

const all = { providers: [{ name: "collector" }], randomSamplingPercentage: 100 };
const told = { providers: [{ name: "told" }] };
const mesh = standardMesh;
const logSides = sidesOf("told");
const edge = { group: "gateway.networking.k8s.io", kind: "Gateway", name: "edge" };
/** For the same workloads as a row without its target, and older. */
const ofNamespace = [telemetry("older", "shop", { accessLogging: [{ ...told, match: { mode: "CLIENT" } }] })];

/** One of each source; with the header `x-b: two` and without `x-c` they come to `foundTags`. */
export const customTags = {
  a: { literal: { value: "one" } },
  b: { header: { name: "x-b" } },
  c: { header: { name: "x-c", defaultValue: "three" } },
  d: { environment: { name: "OTEL_RESOURCE_ATTRIBUTES" } },
  e: { environment: { name: "NOT_SET", defaultValue: "five" } },
  f: { formatter: { value: "%REQ(:METHOD)%" } },
};
export const foundTags = "one two three shop.floor=2 five GET";
export const tagTexts = (seen: Seen): string =>
  Object.keys(customTags)
    .map((name) => tagOf(seen, name))
    .join(" ");

/** Whose first digits say that one of a hundred requests is not this one: mod 10,000 they are 9,999. */
export const seldomSampled = { headers: { "x-request-id": "0000270f-0000-4000-8000-000000000000" } };

const namedSides =
  (label: string) =>
  ({ spans }: Seen) =>
    `${label} ${Object.keys(spans).sort().join(" ")}`.trim();

export const traceRows: Readonly<Record<string, TelemetryRow>> = {
  "traces to a provider": { mesh, spec: { tracing: [all] }, sees: spanSides, expected: "CLIENT SERVER" },
  "traces of one side": {
    mesh,
    spec: { tracing: [all, { match: { mode: "CLIENT" }, disableSpanReporting: true }] },
    sees: spanSides,
    expected: "SERVER",
  },
  "tags of spans": {
    mesh,
    spec: { tracing: [{ ...all, customTags }] },
    call: { headers: { "x-b": "two" } },
    sees: tagTexts,
    expected: foundTags,
  },
  "tags of Istio": {
    mesh,
    spec: { tracing: [{ ...all, enableIstioTags: false }] },
    sees: (seen) => namedSides(tagOf(seen, "istio.namespace"))(seen),
    expected: "- CLIENT SERVER",
  },
  "X-Request-Id tells nothing": {
    mesh,
    spec: { tracing: [{ ...all, useRequestIdForTraceSampling: false }] },
    sees: (seen) => namedSides(String(seen.headers["x-request-id"]).charAt(14))(seen),
    expected: "4 CLIENT SERVER",
  },
  "headers of traces": {
    mesh,
    spec: { tracing: [{ ...all, disableContextPropagation: true }] },
    sees: (seen) => namedSides("traceparent" in seen.headers ? "told" : "untold")(seen),
    expected: "untold CLIENT SERVER",
  },
};

export const logRows: Readonly<Record<string, TelemetryRow>> = {
  "log to a provider": { mesh, spec: { accessLogging: [told] }, sees: logSides, expected: "CLIENT SERVER" },
  "log of one side": {
    mesh,
    spec: { accessLogging: [{ ...told, match: { mode: "SERVER" } }] },
    sees: logSides,
    expected: "SERVER",
  },
  "log of both sides but one": {
    mesh,
    spec: { accessLogging: [told, { match: { mode: "SERVER" }, disabled: true }] },
    sees: logSides,
    expected: "CLIENT",
  },
  "log of what a filter holds for": {
    mesh,
    spec: {
      accessLogging: [
        told,
        { ...told, match: { mode: "SERVER" }, filter: { expression: "request.headers['x-b'] == 'no'" } },
      ],
    },
    call: { headers: { "x-b": "two" } },
    sees: logSides,
    expected: "CLIENT",
  },
  "no log by a filter that is none": {
    mesh,
    spec: { accessLogging: [{ ...told, filter: {} }] },
    sees: logSides,
    expected: "",
  },
  "a filter of Istio's pages: no health checks": {
    mesh,
    spec: {
      accessLogging: [
        { ...told, filter: { expression: '!has(request.useragent) || !(request.useragent.startsWith("call-"))' } },
      ],
    },
    sees: logSides,
    expected: "",
  },
  "a filter of Istio's pages: connections that failed, too": {
    mesh,
    spec: { accessLogging: [{ ...told, filter: { expression: "!has(response.code) || response.code >= 200" } }] },
    sees: logSides,
    expected: "CLIENT SERVER",
  },
  "a filter of Istio's pages: exceptions": {
    mesh,
    spec: {
      accessLogging: [
        {
          ...told,
          filter: {
            expression:
              "response.code >= 400 || xds.cluster_name == 'BlackHoleCluster' ||  xds.cluster_name == 'inbound|3000||' ",
          },
        },
      ],
    },
    sees: logSides,
    expected: "SERVER",
  },
  "no log by a filter that fails": {
    mesh,
    spec: { accessLogging: [{ ...told, filter: { expression: "request.headers['x-none'].startsWith('a')" } }] },
    sees: logSides,
    expected: "",
  },
  "a filter of which an Envoy knows more, and the rest decides": {
    mesh,
    spec: { accessLogging: [{ ...told, filter: { expression: "response.code == 200 || response.flags == 1" } }] },
    sees: logSides,
    expected: "CLIENT SERVER",
  },
  "no log by a filter that an Envoy alone knows": {
    mesh,
    spec: { accessLogging: [{ ...told, filter: { expression: "response.flags == 0" } }] },
    proxy: "tulle",
    sees: logSides,
    expected: "",
  },
  "no log by a filter that is no condition": {
    mesh,
    spec: { accessLogging: [{ ...told, filter: { expression: "request.method" } }] },
    sees: logSides,
    expected: "",
  },
  "no log to somebody unknown": {
    mesh,
    spec: { accessLogging: [told, { providers: [{ name: "nobody" }] }] },
    sees: logSides,
    expected: "CLIENT SERVER",
  },
  "no traces to a Service that is not there": {
    mesh: {
      ...standardMesh,
      extensionProviders: [
        ...standardMesh.extensionProviders,
        { name: "gone", zipkin: { service: "zipkin.observability.svc.cluster.local", port: 9411 } },
      ],
    },
    spec: { tracing: [{ ...all, providers: [{ name: "gone" }] }], accessLogging: [told] },
    sees: (seen) => `spans ${spanSides(seen)}; log ${logSides(seen)}`,
    expected: "spans ; log CLIENT SERVER",
  },
  "for workloads by label": {
    mesh,
    further: ofNamespace,
    spec: {
      selector: { matchLabels: { tier: "front" } },
      accessLogging: [{ ...told, match: { mode: "SERVER" } }],
    },
    sees: logSides,
    expected: "CLIENT SERVER",
  },
  "for a Gateway by targetRef": {
    mesh,
    further: ofNamespace,
    spec: { targetRef: edge, accessLogging: [{ ...told, match: { mode: "SERVER" } }] },
    sees: logSides,
    expected: "CLIENT SERVER",
  },
  "for a Gateway by targetRefs": {
    mesh,
    further: ofNamespace,
    spec: { targetRefs: [edge], accessLogging: [{ ...told, match: { mode: "SERVER" } }] },
    sees: logSides,
    expected: "CLIENT SERVER",
  },
};

const requestMetrics = "request_bytes request_duration_milliseconds requests_total response_bytes";

/** Names of the metrics that have grown, by the side that reports them; `all` are those of a request. */
export function metricNames({ metrics }: Seen): string {
  return ["source", "destination"]
    .map((reporter) => {
      const own = metrics.filter(({ labels }) => labels["reporter"] === reporter);
      const names = [...new Set(own.map(({ name }) => name))].sort().join(" ");
      return `${reporter}: ${names === requestMetrics ? "all" : names || "none"}`;
    })
    .join("; ");
}

/** Metrics of the side that has the label, with its value. */
const labelled =
  (label: string) =>
  ({ metrics }: Pick<Seen, "metrics">): string => {
    const texts = metrics.flatMap(({ name, labels }) =>
      labels[label] === undefined ? [] : [`${labels["reporter"]} ${name} ${labels[label]}`],
    );
    return [...new Set(texts)].sort().join("; ");
  };

const isMeasured = true;
const withoutMetrics = { ...standardMesh, defaultProviders: { metrics: [] } };

const overridden = (...overrides: readonly object[]): Pick<TelemetryRow, "isMeasured" | "mesh" | "spec"> => ({
  isMeasured,
  mesh,
  spec: { metrics: [{ overrides }] },
});

/** Of Tulle's proxy alone: an Envoy as it is published skips Istio's filter. */
export const metricRows: Readonly<Record<string, TelemetryRow>> = {
  "metrics to a provider": {
    isMeasured,
    mesh: withoutMetrics,
    spec: { metrics: [{ providers: [{ name: "prometheus" }] }] },
    sees: metricNames,
    expected: "source: all; destination: all",
  },
  "one metric less of clients": {
    ...overridden({ match: { metric: "REQUEST_SIZE", mode: "CLIENT" }, disabled: true }),
    sees: metricNames,
    expected: "source: request_duration_milliseconds requests_total response_bytes; destination: all",
  },
  "one metric less of servers": {
    ...overridden({ match: { metric: "REQUEST_SIZE", mode: "SERVER" }, disabled: true }),
    sees: metricNames,
    expected: "source: all; destination: request_duration_milliseconds requests_total response_bytes",
  },
  "one metric less of both": {
    ...overridden({ match: { metric: "REQUEST_SIZE", mode: "CLIENT_AND_SERVER" }, disabled: true }),
    sees: metricNames,
    expected:
      "source: request_duration_milliseconds requests_total response_bytes; destination: request_duration_milliseconds requests_total response_bytes",
  },
  "no metrics of clients": {
    ...overridden({ match: { metric: "ALL_METRICS", mode: "CLIENT" }, disabled: true }),
    sees: metricNames,
    expected: "source: none; destination: all",
  },
  "a metric back that the mesh has switched off": {
    ...overridden({ match: { metric: "REQUEST_COUNT" }, disabled: false }),
    further: [
      telemetry("mesh", "tulle-system", {
        metrics: [{ overrides: [{ match: { metric: "REQUEST_COUNT" }, disabled: true }] }],
      }),
    ],
    sees: metricNames,
    expected: "source: all; destination: all",
  },
  "a label of a metric that is named itself": {
    ...overridden({
      match: { customMetric: "requests_total", mode: "SERVER" },
      tagOverrides: { kind: { value: "'a'" } },
    }),
    sees: labelled("kind"),
    expected: "destination requests_total a",
  },
  "a label more": {
    ...overridden({
      match: { metric: "REQUEST_COUNT", mode: "CLIENT" },
      tagOverrides: { method: { operation: "UPSERT", value: "request.method" } },
    }),
    sees: labelled("method"),
    expected: "source requests_total GET",
  },
  "a label less": {
    ...overridden({
      match: { metric: "REQUEST_COUNT", mode: "CLIENT" },
      tagOverrides: { response_code: { operation: "REMOVE" } },
    }),
    sees: ({ metrics }) =>
      labelled("response_code")({ metrics: metrics.filter(({ name }) => name === "requests_total") }),
    expected: "destination requests_total 200",
  },
  "labels of Istio's pages": {
    ...overridden({
      match: { metric: "REQUEST_COUNT", mode: "CLIENT" },
      tagOverrides: {
        request_host: { value: "request.host" },
        destination_port: { value: "string(destination.port)" },
        destination_x: { value: "filter_state.upstream_peer.app" },
      },
    }),
    sees: (seen) =>
      ["request_host", "destination_port", "destination_x"].map((label) => labelled(label)(seen)).join(", "),
    expected:
      "source requests_total server-tulle.shop.svc.cluster.local:3000, source requests_total 15007, source requests_total server-tulle",
  },
  "a label whose expression fails": {
    ...overridden({
      match: { metric: "REQUEST_COUNT", mode: "CLIENT" },
      tagOverrides: { kind: { value: "request.headers['x-none'].size() / 0" } },
    }),
    sees: labelled("kind"),
    expected: "source requests_total unknown",
  },
  "open connections are counted": {
    isMeasured,
    mesh,
    further: [telemetry("mesh", "tulle-system", { metrics: [{ reportingInterval: "1h" }] })],
    spec: { metrics: [{ reportingInterval: "10ms" }] },
    call: { to: "tcp" },
    sees: metricNames,
    expected: "source: none; destination: tcp_connections_opened_total tcp_received_bytes_total tcp_sent_bytes_total",
  },
  "metrics to a provider with a name of its own": {
    isMeasured,
    mesh: { ...withoutMetrics, extensionProviders: [{ name: "own", prometheus: {} }] },
    spec: { metrics: [{ providers: [{ name: "own" }] }] },
    sees: metricNames,
    expected: "source: all; destination: all",
  },
};
