// Both proxies with the same listeners that trace, each with a collector of its own: what a client gets, what the host
// is told, and the spans, without what differs by nature.
import http from "node:http";
import type { Duplex } from "node:stream";
import { waitFor } from "../../../../tests/tools/processes.ts";
import type { HttpVersion } from "../../../../tests/tools/http2-client.ts";
import { extension, http2Options, loopback, router, staticCluster } from "./envoy-json.ts";
import { clients, type Sides, startSides } from "./parity-pair.ts";
import { type SeenSpan, TraceCollector } from "./trace-collector.ts";
import { serveTunnel, type Tunnel, useTunnel } from "./tunnels.ts";

export interface TracedListener {
  readonly name: string;
  readonly tracing: object;
  readonly direction: "INBOUND" | "OUTBOUND";
  readonly manager?: object;
}

export interface TracedCall {
  readonly listener: string;
  readonly path: string;
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string | readonly string[]>>;
  readonly body?: readonly string[];
  readonly version?: HttpVersion;
  /** It is one, through which a word goes there and back before it ends. */
  readonly tunnel?: Tunnel;
  /** How many come of it: they are waited for. "as told": one, if the host was told that the trace is sampled. */
  readonly spans: number | "as told";
  /** Where Envoy writes another number of them. */
  readonly envoysSpans?: number;
}

export interface TracedOutcome {
  readonly status: number;
  /** `x-envoy-decorator-operation` of the response. */
  readonly decoration: string;
  /** Trace headers of each try; ids of our own making by their part: `new`, `request`, `try`. */
  readonly upstream: readonly Readonly<Record<string, string>>[];
  readonly spans: readonly object[];
}

/** Headers that say something of traces. */
const traceHeaders =
  `traceparent tracestate b3 x-b3-traceid x-b3-spanid x-b3-parentspanid x-b3-sampled x-b3-flags baggage
  x-request-id x-envoy-decorator-operation x-envoy-force-trace x-client-trace-id`.split(/\s+/);

export const openTelemetry = (more: object = {}): object => ({
  name: "envoy.tracers.opentelemetry",
  typed_config: {
    "@type": "type.googleapis.com/envoy.config.trace.v3.OpenTelemetryConfig",
    grpc_service: { envoy_grpc: { cluster_name: "collector" }, timeout: "5s" },
    service_name: "shop",
    ...more,
  },
});

export const openTelemetryOverHttp: object = openTelemetry({
  grpc_service: undefined,
  http_service: {
    http_uri: { uri: "http://collector.test/v1/traces", cluster: "http_collector", timeout: "5s" },
    request_headers_to_add: [{ header: { key: "x-key", value: "secret" } }],
  },
});

export const zipkin = (more: object = {}): object => ({
  name: "envoy.tracers.zipkin",
  typed_config: {
    "@type": "type.googleapis.com/envoy.config.trace.v3.ZipkinConfig",
    collector_cluster: "http_collector",
    collector_endpoint: "/api/v2/spans",
    collector_endpoint_version: "HTTP_JSON",
    ...more,
  },
});

export interface TracingStage {
  run(
    calls: readonly TracedCall[],
  ): Promise<{ readonly ours: readonly TracedOutcome[]; readonly envoys: readonly TracedOutcome[] }>;
  readonly sides: Sides;
  readonly collectors: { readonly ours: TraceCollector; readonly envoys: TraceCollector };
  stop(): Promise<void>;
}

export async function startTracingStage(
  listeners: readonly TracedListener[],
  routes: readonly object[],
  clustersOf: (side: "ours" | "envoys") => readonly object[] = () => [],
): Promise<TracingStage> {
  const collectors = { ours: new TraceCollector(), envoys: new TraceCollector("turned around") };
  const ports = { ours: await collectors.ours.start(), envoys: await collectors.envoys.start() };
  const seen: SeenRequests = new Map();
  const server = http.createServer((request, response) => answer(request, response, seen));
  for (const event of ["upgrade", "connect"] as const) {
    server.on(event, (request: http.IncomingMessage, socket: Duplex) => {
      note(request, seen);
      serveTunnel(request, socket);
    });
  }
  const sides = await startSides(server, listeners.length, (appPort, log) => {
    const side = log.endsWith("ours.log") ? "ours" : "envoys";
    return bootstrap(listeners, routes, clustersOf(side), appPort, ports[side]);
  });
  let sent = 0;
  const callOn = async (side: "ours" | "envoys", calls: readonly TracedCall[], first: number): Promise<Called[]> => {
    const called: Called[] = [];
    for (const [index, call] of calls.entries()) {
      const id = `${side}-${first + index}`;
      const port = sides[side === "ours" ? "ours" : "envoy"].ports.get(call.listener)!;
      const headers = { "user-agent": id, ...call.headers };
      const version = call.version ?? "HTTP/1.1";
      const { tunnel } = call;
      const got =
        tunnel === undefined
          ? await clients[version](port, { ...call, headers })
          : await useTunnel(port, version, tunnel, { ...call, headers });
      const { status, headers: given } = got;
      const usedMs = "usedMs" in got ? got.usedMs : undefined;
      const isTold = seen.get(id)?.some((told) => told["traceparent"]?.endsWith("-01") === true) === true;
      const spans = side === "ours" ? call.spans : (call.envoysSpans ?? call.spans);
      const count = spans === "as told" ? Number(isTold) : spans;
      called.push({ id, usedMs, status, decoration: String(given["x-envoy-decorator-operation"] ?? ""), count });
    }
    return called;
  };
  const outcomesOf = async (collector: TraceCollector, called: readonly Called[]): Promise<TracedOutcome[]> => {
    const missing = (): readonly string[] =>
      called.filter(({ id, count }) => spansOf(collector, id).length < count).map(({ id }) => id);
    await waitFor(() => missing().length === 0, { what: "spans", details: () => missing().join(" ") });
    return called.map(({ id, status, decoration, usedMs }) => {
      const spans = spansOf(collector, id);
      const upstream = (seen.get(id) ?? []).map((headers) => comparableHeaders(headers, spans));
      return { status, decoration, upstream, spans: spans.map((span) => comparableSpan(span, spans, id, usedMs)) };
    });
  };
  return {
    sides,
    collectors,
    async run(calls) {
      const first = sent;
      sent += calls.length;
      const ours = await callOn("ours", calls, first);
      const envoys = await callOn("envoys", calls, first);
      return {
        ours: await outcomesOf(collectors.ours, ours),
        envoys: await outcomesOf(collectors.envoys, envoys),
      };
    },
    async stop() {
      await sides.stop();
      collectors.ours.close();
      collectors.envoys.close();
    },
  };
}

interface Called {
  readonly id: string;
  /** When the word was back. */
  readonly usedMs: number | undefined;
  readonly status: number;
  readonly decoration: string;
  readonly count: number;
}

/** The request's span, and those of its tries behind it. */
function spansOf({ spans }: TraceCollector, id: string): readonly SeenSpan[] {
  const request = spans.find(({ attributes }) => attributes["user_agent"] === id);
  if (request === undefined) return [];
  const tries = spans.filter((span) => span.parentSpanId === request.spanId && span.traceId === request.traceId);
  return [request, ...tries];
}

/** Ids of this run by what they are. */
function plainIds(text: string, [request, ...tries]: readonly SeenSpan[]): string {
  if (request === undefined)
    return text.replace(/^(?:00-)?[0-9a-f]{16,32}(?=-|$)/, "TRACE").replace(/[0-9a-f]{16}/, "SPAN");
  let plain = request.parentSpanId === "" ? text.replaceAll(request.traceId, "TRACE") : text;
  for (const [index, { spanId }] of tries.entries()) plain = plain.replaceAll(spanId, `TRY${index}`);
  return plain.replaceAll(request.spanId, "REQUEST");
}

function comparableHeaders(
  headers: Readonly<Record<string, string>>,
  spans: readonly SeenSpan[],
): Record<string, string> {
  // Envoy sends an empty `tracestate` where there is none.
  const told = Object.entries(headers).filter(([name, value]) => name !== "tracestate" || value !== "");
  return Object.fromEntries(
    told.map(([name, value]) => {
      if (name === "x-request-id") return [name, value.length === 36 ? value[14]! : value];
      return [name, plainIds(value, spans)];
    }),
  );
}

function comparableSpan(span: SeenSpan, spans: readonly SeenSpan[], id: string, usedMs: number | undefined): object {
  const { name, kind, traceId, spanId, parentSpanId, traceState, events, status, isShared } = span;
  const resource = Object.entries(span.resource).filter(([key]) => !key.startsWith("telemetry.sdk."));
  const attributes = Object.entries(span.attributes).map(([key, value]) => {
    if (key === "guid:x-request-id") return [key, String(value)[14]];
    return [key, value === id ? "(id)" : value];
  });
  return {
    name,
    kind,
    ids: [traceId, spanId, parentSpanId].map((text) => plainIds(text, spans)).join(" "),
    traceState,
    attributes: Object.fromEntries(attributes.sort(([a], [b]) => (String(a) < String(b) ? -1 : 1))),
    events: events.map((event) => event.name),
    status,
    isShared,
    ...(usedMs !== undefined && { lastsAsLongAsTheTunnel: span.endMs >= usedMs }),
    resource: Object.fromEntries(resource.sort(([a], [b]) => (a < b ? -1 : 1))),
  };
}

type SeenRequests = Map<string, Record<string, string>[]>;

/** All of the client's, this one among them. */
function note(request: http.IncomingMessage, seen: SeenRequests): Record<string, string>[] {
  const id = request.headers["user-agent"] ?? "";
  const list = seen.get(id) ?? [];
  seen.set(id, list);
  const shown = traceHeaders.flatMap((name) => {
    const values = request.headersDistinct[name];
    return values === undefined ? [] : [[name, values.join(" | ")]];
  });
  list.push(Object.fromEntries(shown) as Record<string, string>);
  return list;
}

/** What a path asks for: a status, a gRPC status, or nothing at all. */
function answer(request: http.IncomingMessage, response: http.ServerResponse, seen: SeenRequests): void {
  const list = note(request, seen);
  const [, word = "", argument = ""] = (request.url ?? "").split("?")[0]!.split("/");
  if (word === "late") return;
  if (word === "cut") return void request.socket.destroy();
  if (word === "grpc") {
    response.writeHead(200, { "content-type": "application/grpc", "grpc-status": argument, "grpc-message": "words" });
  } else if (word === "decorated") response.setHeader("x-envoy-decorator-operation", "by the host");
  else if (word === "status") response.writeHead(Number(argument));
  else if (word === "once" && list.length === 1) response.writeHead(503);
  response.end(word === "grpc" ? "" : "ok");
}

function bootstrap(
  listeners: readonly TracedListener[],
  routes: readonly object[],
  clusters: readonly object[],
  appPort: number,
  { httpPort, grpcPort }: { readonly httpPort: number; readonly grpcPort: number },
): string {
  const managerOf = ({ name, tracing, manager }: TracedListener): object => ({
    "@type": extension("filters.network.http_connection_manager.v3.HttpConnectionManager"),
    stat_prefix: name,
    use_remote_address: true,
    internal_address_config: { cidr_ranges: [{ address_prefix: "127.0.0.1", prefix_len: 32 }] },
    route_config: {
      validate_clusters: false,
      virtual_hosts: [{ name: "all", domains: ["*"], metadata: { filter_metadata: { tulle: {} } }, routes }],
    },
    http_filters: [router],
    tracing,
    ...manager,
  });
  return JSON.stringify({
    admin: { address: loopback(0) },
    node: { id: "node-1", cluster: "shop-cluster", locality: { zone: "zone-1" } },
    static_resources: {
      listeners: listeners.map((listener) => ({
        name: listener.name,
        traffic_direction: listener.direction,
        address: loopback(0),
        filter_chains: [
          {
            filters: [{ name: "envoy.filters.network.http_connection_manager", typed_config: managerOf(listener) }],
          },
        ],
      })),
      clusters: [
        staticCluster("app", [appPort], { alt_stat_name: "app-alt" }),
        staticCluster("dead", [1]),
        staticCluster("http_collector", [httpPort]),
        staticCluster("collector", [grpcPort], { typed_extension_protocol_options: http2Options }),
        ...clusters,
      ],
    },
  });
}
