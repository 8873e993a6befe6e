// What each field of the mesh's configuration about telemetry does.
import { customTags, foundTags, metricNames, seldomSampled, standardMesh, tagTexts } from "./resource-rows.ts";
import { type Seen, sidesOf, spanSides, tagOf, type TelemetryRow, textOf } from "./telemetry-row.ts";

const service = "collector.observability.svc.cluster.local";
const longPath = `/${"a".repeat(60)}/${"b".repeat(300)}`;

/** The server's line of a file, as far as it is like the format of its row. */
const lineOf =
  (file: string) =>
  ({ lines }: Seen): string => {
    const [line] = lines(file).filter((each) => !each.includes("outbound|"));
    if (line === undefined) return "no line";
    return /^(mine |\{"row")/.test(line) ? line : "another line";
  };

function pathOf(seen: Seen): string {
  const [, path = ""] = /:3000(\/.*)$/.exec(tagOf(seen, "http.url")) ?? [];
  return path;
}

/** How the span of the server came, and what it and the headers of its trace are like. */
function sentSpan(seen: Seen): string {
  const { sentBy = {}, resource = {}, traceId = "" } = seen.spans.SERVER ?? {};
  const passedOn = Object.keys(seen.headers).filter((name) => name === "x-b3-traceid" || name === "traceparent");
  const told = [sentBy[":path"], sentBy["x-tenant"], resource["shop.floor"]].map(textOf);
  const lengths = `id ${traceId.length} path ${pathOf(seen).length}`;
  return [...told, lengths, ...passedOn.sort()].join(" ");
}

/** A header of the request that brought the span of the server. */
const broughtWith =
  (header: string) =>
  ({ spans }: Seen): string =>
    String(spans.SERVER?.sentBy[header]);

export const otlpPath = "/opentelemetry.proto.collector.trace.v1.TraceService/Export";
const expectedMs = "x-envoy-expected-rq-timeout-ms";

const entry = { randomSamplingPercentage: 100 };
const withProvider = (provider: object): object => ({
  ...standardMesh,
  extensionProviders: [...standardMesh.extensionProviders, { name: "own", ...provider }],
});
const tracedBy = (provider: object): Pick<TelemetryRow, "mesh" | "spec" | "call"> => ({
  mesh: withProvider(provider),
  spec: { tracing: [{ ...entry, providers: [{ name: "own" }] }] },
  call: { path: longPath },
});
const loggedBy = (provider: object): Pick<TelemetryRow, "mesh" | "spec"> => ({
  mesh: withProvider(provider),
  spec: { accessLogging: [{ providers: [{ name: "own" }] }] },
});

export const settingRows: Readonly<Record<string, TelemetryRow>> = {
  "default providers": {
    mesh: {
      ...standardMesh,
      defaultConfig: { tracing: { sampling: 100 } },
      defaultProviders: { tracing: ["collector"], accessLogging: ["told"] },
    },
    call: seldomSampled,
    sees: (seen) => `spans ${spanSides(seen)}; log ${sidesOf("told")(seen)}`,
    expected: "spans CLIENT SERVER; log CLIENT SERVER",
  },
  "no metrics by default": {
    isMeasured: true,
    mesh: { defaultProviders: { metrics: [] } },
    sees: metricNames,
    expected: "source: none; destination: none",
  },
  "the mesh's log": {
    mesh: { accessLogFile: "/logs/own", accessLogFormat: "mine %REQ(X-ROW)% %UPSTREAM_CLUSTER_RAW%" },
    sees: (seen) =>
      `${sidesOf("own")(seen)} ${lineOf("own")(seen).replace(/ .*/, "")}; stdout ${sidesOf("stdout")(seen)}`,
    expected: "CLIENT SERVER mine; stdout ",
  },
  "the mesh's log in JSON": {
    mesh: {
      accessLogFile: "/logs/json",
      accessLogEncoding: "JSON",
      accessLogFormat: '{"row":"%REQ(X-ROW)%","status":"%RESPONSE_CODE%"}',
    },
    sees: lineOf("json"),
    expected: '{"row":"","status":200}',
  },
  "connections that nobody takes": {
    mesh: { accessLogFile: "/logs/listener", disableEnvoyListenerLog: true },
    further: [
      {
        apiVersion: "security.istio.io/v1",
        kind: "PeerAuthentication",
        metadata: { name: "strict", namespace: "shop" },
        spec: { mtls: { mode: "STRICT" } },
      },
    ],
    call: { to: "http" },
    sees: ({ lines }) => (lines("listener").length === 0 ? "no line" : "a line"),
    expected: "no line",
  },
  "traces by the older fields": {
    mesh: {
      enableTracing: true,
      defaultConfig: {
        tracing: {
          sampling: 100,
          zipkin: { address: "collector.observability:4318" },
          customTags,
          maxPathTagLength: 50,
          enableIstioTags: false,
        },
      },
    },
    call: { path: longPath, headers: { ...seldomSampled.headers, "x-b": "two" } },
    sees: (seen) => `${spanSides(seen)} ${tagTexts(seen)}, ${tagOf(seen, "istio.namespace")} ${pathOf(seen).length}`,
    expected: `CLIENT SERVER ${foundTags}, - 50`,
  },
};

/** The object that Istio's filter for gRPC leaves in the filter state of requests, and a call of two messages. */
const grpcMessages = "envoy.filters.http.grpc_stats";
type Objects = Readonly<Record<string, { readonly requestMessageCount?: string }>>;
const grpcCall = {
  call: { headers: { "content-type": "application/grpc", te: "trailers" }, body: "\0\0\0\0\x02hi\0\0\0\0\x01!" },
} as const;

const tenant = [{ name: "x-tenant", value: "shop" }];
const overHttp = tracedBy({
  opentelemetry: {
    service,
    port: 4318,
    maxTagLength: 40,
    http: { path: "/tenant/v1/traces", timeout: "3s", headers: tenant },
    resourceDetectors: { environment: {} },
  },
});
const overGrpc = tracedBy({
  opentelemetry: { service, port: 4317, grpc: { timeout: "3s", initialMetadata: tenant } },
});
const byZipkin = tracedBy({
  zipkin: {
    service,
    port: 4318,
    maxTagLength: 40,
    enable64bitTraceId: true,
    path: "/tenant/spans",
    traceContextOption: "USE_B3_WITH_W3C_PROPAGATION",
    timeout: "3s",
    headers: tenant,
  },
});

export const providerRows: Readonly<Record<string, TelemetryRow>> = {
  "OTLP over HTTP": { ...overHttp, sees: sentSpan, expected: "/tenant/v1/traces shop 2 id 32 path 40 traceparent" },
  "OTLP over HTTP as Istio's pages write it": {
    ...tracedBy({
      opentelemetry: { service, port: 4318, http: { path: "v1/traces" }, resource_detectors: { environment: {} } },
    }),
    sees: sentSpan,
    expected: "/v1/traces - 2 id 32 path 256 traceparent",
  },
  "OTLP over HTTP, in time": { ...overHttp, sees: broughtWith(expectedMs), expected: "3000" },
  "OTLP over gRPC": { ...overGrpc, sees: sentSpan, expected: `${otlpPath} shop - id 32 path 256 traceparent` },
  // Envoy's tracers of these two have time-outs of their own.
  "OTLP over gRPC, in time": { ...overGrpc, proxy: "tulle", sees: broughtWith("grpc-timeout"), expected: "3000m" },
  "Zipkin, in time": { ...byZipkin, proxy: "tulle", sees: broughtWith(expectedMs), expected: "3000" },
  Zipkin: { ...byZipkin, sees: sentSpan, expected: "/tenant/spans shop - id 16 path 40 traceparent x-b3-traceid" },
  "a file of lines": {
    ...loggedBy({
      envoyFileAccessLog: {
        path: "/logs/lines",
        logFormat: { text: "mine %REQ(X-ROW)% [%REQ(X-NONE)%]" },
        omitEmptyValues: true,
      },
    }),
    sees: lineOf("lines"),
    expected: "mine  []",
  },
  "a file of JSON": {
    ...loggedBy({
      envoyFileAccessLog: { path: "/logs/fields", logFormat: { labels: { row: "%REQ(X-ROW)%", to: "mine" } } },
    }),
    sees: lineOf("fields"),
    expected: '{"row":"","to":"mine"}',
  },
  "a log by OTLP": {
    ...loggedBy({
      envoyOtelAls: {
        service,
        port: 4317,
        logName: "shop-log",
        logFormat: { text: "mine %REQ(X-ROW)%", labels: { status: "%RESPONSE_CODE%", row: "%REQ(X-ROW)%" } },
        filterStateObjectsToLog: [grpcMessages],
      },
    }),
    ...grpcCall,
    sees: ({ records }) => {
      const { body, attributes } = (records[0] ?? {}) as {
        readonly body?: object;
        readonly attributes?: readonly { readonly key: string }[];
      };
      const told = JSON.stringify(body)?.includes("mine ");
      return `${records.length} mine=${told} ${attributes?.map(({ key }) => key).join(" ")}`;
    },
    expected: "2 mine=true row status tulle.config.revision",
  },
  "Envoy's access log service, requests": {
    ...loggedBy({
      envoyHttpAls: {
        service,
        port: 9000,
        logName: "shop-requests",
        filterStateObjectsToLog: [grpcMessages],
        additionalRequestHeadersToLog: ["x-row"],
        additionalResponseHeadersToLog: ["content-type"],
      },
    }),
    sees: ({ entries }) => {
      const { logName, request, response } = (entries[0] ?? {}) as {
        readonly logName?: string;
        readonly request?: { readonly requestHeaders?: object };
        readonly response?: { readonly responseHeaders?: object };
      };
      const names = [request?.requestHeaders, response?.responseHeaders].flatMap((headers = {}) =>
        Object.keys(headers),
      );
      return [entries.length, logName, ...names].join(" ");
    },
    expected: "2 shop-requests x-row content-type",
  },
  "Envoy's access log service, what filters know of a call": {
    ...loggedBy({ envoyHttpAls: { service, port: 9000, filterStateObjectsToLog: [grpcMessages] } }),
    ...grpcCall,
    sees: ({ entries }) =>
      (entries as readonly { readonly commonProperties?: { readonly filterStateObjects?: Objects } }[])
        .map(({ commonProperties }) => commonProperties?.filterStateObjects?.[grpcMessages]?.requestMessageCount)
        .join(" "),
    expected: "2 2",
  },
  "Envoy's access log service, trailers": {
    ...loggedBy({ envoyHttpAls: { service, port: 9000, additionalResponseTrailersToLog: ["x-end"] } }),
    call: { application: "HTTP/2" },
    sees: ({ entries }) =>
      (entries as readonly { readonly response?: { readonly responseTrailers?: object } }[])
        .map(({ response }) => JSON.stringify(response?.responseTrailers ?? {}))
        .join(" "),
    expected: '{"x-end":"told"} {"x-end":"told"}',
  },
  "Envoy's access log service, connections": {
    ...loggedBy({
      envoyTcpAls: { service, port: 9000, logName: "shop-connections", filterStateObjectsToLog: [grpcMessages] },
    }),
    call: { to: "tcp" },
    sees: ({ entries }) => entries.map(({ logName }) => logName).join(" "),
    expected: "shop-connections",
  },
};
