// Spans of WebSockets and of tunnels by CONNECT, of this proxy and of a stock Envoy: names, kinds, attributes, what the
// host is told, and that a span lasts as long as its tunnel.
import assert from "node:assert/strict";
import net, { type AddressInfo } from "node:net";
import { after, before, suite, test } from "node:test";
import { staticCluster } from "../testing/envoy-json.ts";
import {
  openTelemetry,
  startTracingStage,
  type TracedCall,
  type TracedListener,
  type TracedOutcome,
  type TracingStage,
  zipkin,
} from "../testing/tracing-stage.ts";
import { echo, type Tunnel } from "../testing/tunnels.ts";

const manager = {
  upgrade_configs: [{ upgrade_type: "websocket" }, { upgrade_type: "CONNECT" }],
  http2_protocol_options: { allow_connect: true },
};
const noUpgrades = { http2_protocol_options: { allow_connect: true } };
const provider = openTelemetry();
const listeners: readonly TracedListener[] = [
  { name: "in", direction: "INBOUND", tracing: { provider }, manager },
  { name: "out", direction: "OUTBOUND", tracing: { provider }, manager },
  { name: "spawn", direction: "OUTBOUND", tracing: { provider, spawn_upstream_span: true }, manager },
  { name: "none", direction: "INBOUND", tracing: { provider }, manager: noUpgrades },
  { name: "zipkin", direction: "INBOUND", tracing: { provider: zipkin(), spawn_upstream_span: true }, manager },
];
const connectTo = (header: string, cluster: string, connect_config?: object): object => ({
  match: { connect_matcher: {}, headers: [{ name: "x-to", string_match: { exact: header } }] },
  route: { cluster, upgrade_configs: [{ upgrade_type: "CONNECT", ...(connect_config && { connect_config }) }] },
});
const routes = [
  connectTo("tcp", "echo", {}),
  connectTo("dead", "dead", {}),
  connectTo("host", "app"),
  { match: { path: "/op" }, route: { cluster: "app" }, decorator: { operation: "op" } },
  { match: { path: "/dead" }, route: { cluster: "dead" } },
  { match: { prefix: "/" }, route: { cluster: "app" } },
];

type Attributes = Readonly<Record<string, string | undefined>>;

interface Row extends TracedCall {
  readonly name: string;
  /** Attributes that are not Envoy's, of the request's span and of its try's; undefined: there is none. */
  readonly differ: readonly Attributes[];
}

interface Ask extends Pick<TracedCall, "listener" | "path" | "headers" | "spans" | "envoysSpans"> {
  readonly end?: Tunnel["end"];
  readonly differOverHttp1?: readonly Attributes[];
  readonly differOverHttp2?: readonly Attributes[];
}

const trace = "0af7651916cd43dd8448eb211c80319c";
const span = "b7ad6b7169203331";

/** Without a path Envoy says nothing of where it leads. */
const itsUrl: Attributes = { "http.url": "http://main.test:80" };
/** A client of HTTP/1.1 that ends its side may go on listening: docs/differences-from-envoy.md. */
const isNoDisconnect: Attributes = { response_flags: "-" };
const isNotCanceled: Attributes = { canceled: undefined };

function both(name: string, kind: Tunnel["kind"], ask: Ask, end: Tunnel["end"]): readonly Row[] {
  const { differOverHttp1 = [], differOverHttp2 = [], ...call } = ask;
  const tunnel = { kind, end: ask.end ?? end };
  return [
    { ...call, name: `${name}, HTTP/1.1`, tunnel, version: "HTTP/1.1", differ: differOverHttp1 },
    { ...call, name: `${name}, HTTP/2`, tunnel, version: "HTTP/2", differ: differOverHttp2 },
  ];
}

const websocket = (name: string, ask: Ask): readonly Row[] => both(name, "websocket", ask, "host");

/** All have an URL. */
function connect(
  name: string,
  { differOverHttp1 = [], differOverHttp2 = [], ...ask }: Omit<Ask, "path">,
): readonly Row[] {
  const withUrl = ([first, ...rest]: readonly Attributes[]) => [{ ...itsUrl, ...first }, ...rest];
  const differ = { differOverHttp1: withUrl(differOverHttp1), differOverHttp2: withUrl(differOverHttp2) };
  return both(name, "connect", { path: "", ...ask, ...differ }, "client");
}

const rows: readonly Row[] = [
  ...websocket("a WebSocket", { listener: "in", path: "/ok", spans: 1 }),
  ...websocket("a WebSocket on the client's side", { listener: "out", path: "/ok", spans: 1 }),
  ...websocket("a WebSocket with spans of tries", { listener: "spawn", path: "/ok", spans: 2 }),
  ...websocket("a WebSocket that the client cuts", {
    listener: "spawn",
    path: "/ok",
    spans: 2,
    end: "cut",
    differOverHttp1: [isNoDisconnect, isNotCanceled],
  }),
  ...websocket("a WebSocket that the host refuses", { listener: "spawn", path: "/status/404", spans: 2 }),
  ...websocket("a WebSocket whose host is not there", { listener: "spawn", path: "/dead", spans: 2 }),
  ...websocket("a WebSocket whose host breaks off", { listener: "spawn", path: "/cut", spans: 2 }),
  ...websocket("a WebSocket that may not be", { listener: "none", path: "/ok", spans: 1, envoysSpans: 0 }),
  ...websocket("a WebSocket with a decorator", { listener: "in", path: "/op", spans: 1 }),
  ...websocket("a WebSocket of a sampled parent", {
    listener: "in",
    path: "/ok",
    spans: 1,
    headers: { traceparent: `00-${trace}-${span}-01` },
  }),
  ...websocket("a WebSocket of a parent that is not sampled", {
    listener: "in",
    path: "/ok",
    spans: 0,
    headers: { traceparent: `00-${trace}-${span}-00` },
  }),
  ...websocket("Zipkin: a WebSocket", { listener: "zipkin", path: "/ok", spans: 2 }),
  ...connect("a tunnel", { listener: "in", spans: 1, headers: { "x-to": "tcp" }, differOverHttp1: [isNoDisconnect] }),
  ...connect("a tunnel with spans of tries", {
    listener: "spawn",
    spans: 2,
    headers: { "x-to": "tcp" },
    differOverHttp1: [isNoDisconnect, isNotCanceled],
  }),
  ...connect("a tunnel that the host ends", {
    listener: "spawn",
    spans: 2,
    headers: { "x-to": "tcp" },
    end: "host",
  }),
  ...connect("a tunnel that the client cuts", {
    listener: "spawn",
    spans: 2,
    headers: { "x-to": "tcp" },
    end: "cut",
    differOverHttp1: [isNoDisconnect, isNotCanceled],
  }),
  ...connect("a tunnel whose host is not there", {
    listener: "spawn",
    spans: 2,
    headers: { "x-to": "dead" },
  }),
  ...connect("a tunnel that is passed on", {
    listener: "spawn",
    spans: 2,
    headers: { "x-to": "host" },
    differOverHttp1: [isNoDisconnect, isNotCanceled],
    // The client had ended its side, so that the host's end is the tunnel's: nothing was cut off.
    differOverHttp2: [isNoDisconnect, { response_flags: "-", error: undefined, "error.reason": undefined }],
  }),
  ...connect("a tunnel without a route", { listener: "in", spans: 1 }),
  ...connect("Zipkin: a tunnel", {
    listener: "zipkin",
    spans: 2,
    headers: { "x-to": "tcp" },
    differOverHttp1: [isNoDisconnect, isNotCanceled],
  }),
];

suite("spans of tunnels", () => {
  const host = net.createServer({ allowHalfOpen: true }, echo);
  let stage: TracingStage;
  let ours: readonly TracedOutcome[] = [];
  let envoys: readonly TracedOutcome[] = [];

  before(async () => {
    await new Promise<void>((resolve) => {
      host.listen(0, "127.0.0.1", resolve);
    });
    const echoCluster = staticCluster("echo", [(host.address() as AddressInfo).port]);
    stage = await startTracingStage(listeners, routes, () => [echoCluster]);
    ({ ours, envoys } = await stage.run(rows));
  });
  after(async () => {
    await stage.stop();
    host.close();
  });

  for (const [index, { name, differ, envoysSpans }] of rows.entries()) {
    test(name, () => {
      const [own, other] = [ours[index]!, envoys[index]!];
      if (envoysSpans !== 0) return assert.deepEqual(own, { ...other, spans: withOwn(other.spans, differ) });
      // A request that may not become a tunnel is a request, too.
      assert.deepEqual({ ...own, spans: [] }, other);
      assert.partialDeepStrictEqual(own.spans, [{ attributes: { "http.status_code": "403", ...differ[0] } }]);
    });
  }
});

function withOwn(spans: readonly object[], differ: readonly Attributes[]): readonly object[] {
  return spans.map((each, index) => {
    const { attributes } = each as { readonly attributes: Attributes };
    const own = Object.entries({ ...attributes, ...differ[index] }).filter(([, value]) => value !== undefined);
    return { ...each, attributes: Object.fromEntries(own) };
  });
}
