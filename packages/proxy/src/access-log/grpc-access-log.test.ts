// Access logs that go to an access log service: what both proxies send for the same requests and connections, field by
// field.
import assert from "node:assert/strict";
import http from "node:http";
import net from "node:net";
import { after, before, test } from "node:test";
import { freePort, waitFor } from "../../../../tests/tools/processes.ts";
import { AccessLogService, type LogEntry, type ServiceBehaviour } from "../testing/access-log-service.ts";
import { helloFrom, serverName } from "../testing/made-hello.ts";
import { extension, http2Options, loopback, staticCluster } from "../testing/envoy-json.ts";
import { clients, countersOf, type ParityCall, type Side, type Sides, startSides } from "../testing/parity-pair.ts";

const service = new AccessLogService();
const servicePort = await service.start();
const refusingPort = await freePort();

const commonConfig = (log_name: string): object => ({
  log_name,
  grpc_service: { envoy_grpc: { cluster_name: "logs" }, initial_metadata: [{ key: "x-tenant", value: "one" }] },
  transport_api_version: "V3",
  buffer_flush_interval: "0.1s",
});

const requestLog = (log_name: string, name = "envoy.access_loggers.http_grpc"): object => ({
  name,
  typed_config: {
    "@type": extension("access_loggers.grpc.v3.HttpGrpcAccessLogConfig"),
    common_config: commonConfig(log_name),
    additional_request_headers_to_log: ["X-A", "x-none", ":method", "referer"],
    additional_response_headers_to_log: ["x-b", ":status"],
    additional_response_trailers_to_log: ["x-t"],
  },
});

const connectionLog = (log_name: string): object => ({
  name: "envoy.access_loggers.tcp_grpc",
  typed_config: {
    "@type": extension("access_loggers.grpc.v3.TcpGrpcAccessLogConfig"),
    common_config: commonConfig(log_name),
  },
});

/** Adds no header with a time in it. */
const quietRouter = {
  name: "router",
  typed_config: { "@type": extension("filters.http.router.v3.Router"), suppress_envoy_headers: true },
};

const fingerprinting = {
  name: "tls",
  typed_config: {
    "@type": extension("filters.listener.tls_inspector.v3.TlsInspector"),
    enable_ja3_fingerprinting: true,
    enable_ja4_fingerprinting: true,
  },
};

function bootstrap(port: number): string {
  const manager = {
    "@type": extension("filters.network.http_connection_manager.v3.HttpConnectionManager"),
    stat_prefix: "main",
    http_protocol_options: { enable_trailers: true },
    route_config: {
      virtual_hosts: [
        {
          name: "all",
          domains: ["*"],
          routes: [
            { name: "gone", match: { path: "/gone" }, direct_response: { status: 410, body: { inline_string: "no" } } },
            { name: "down", match: { path: "/down" }, route: { cluster: "down" } },
            { name: "none", match: { path: "/none" }, route: { cluster: "none" } },
            { name: "rest", match: { prefix: "/" }, route: { cluster: "app" } },
          ],
        },
      ],
    },
    http_filters: [
      {
        // Leaves metadata.
        name: "envoy.filters.http.rbac",
        typed_config: {
          "@type": extension("filters.http.rbac.v3.RBAC"),
          shadow_rules: { policies: { all: { permissions: [{ any: true }], principals: [{ any: true }] } } },
        },
      },
      quietRouter,
    ],
    access_log: [requestLog("requests"), requestLog("redacted", "tulle.redacted_query:token,code")],
  };
  const proxy = (cluster: string): object => ({
    "@type": extension("filters.network.tcp_proxy.v3.TcpProxy"),
    stat_prefix: cluster,
    cluster,
    access_log: [connectionLog("connections")],
  });
  const listener = (name: string, typed_config: object, more: object = {}): object => ({
    name,
    address: loopback(0),
    filter_chains: [{ filters: [{ name: "last", typed_config }] }],
    ...more,
  });
  return JSON.stringify({
    node: { id: "the node", cluster: "its cluster", locality: { zone: "its zone" } },
    admin: { address: loopback(0) },
    static_resources: {
      listeners: [
        listener("main", manager, { access_log: [connectionLog("listener")] }),
        listener("tcp", proxy("app")),
        listener("tcp-down", proxy("down")),
        listener("hello", proxy("app"), { listener_filters: [fingerprinting] }),
      ],
      clusters: [
        staticCluster("app", [port]),
        staticCluster("down", [refusingPort]),
        staticCluster("none", []),
        staticCluster("logs", [servicePort], { typed_extension_protocol_options: http2Options }),
      ],
    },
  });
}

let sides: Sides;
before(async () => {
  const host = http.createServer((request, response) => {
    request.resume();
    response.writeHead(200, { "x-b": "b", trailer: "x-t" });
    response.write("body");
    response.addTrailers({ "x-t": "t" });
    response.end();
  });
  sides = await startSides(host, 4, bootstrap);
});
after(async () => {
  await sides?.stop();
  service.close();
});

const call = (path: string, more: Partial<ParityCall> = {}): ParityCall => ({ listener: "main", path, ...more });
const calls: readonly ParityCall[] = [
  call("/"),
  call("/a?b=c", {
    method: "POST",
    body: ["12345"],
    headers: { "x-a": ["1", "2"], "user-agent": "me", referer: "/r?a" },
  }),
  call("/gone", { method: "HEAD" }),
  call("/down", { method: "PURGE" }),
  call("/none", { headers: { "x-a": 'q"uo\\te' } }),
  call("/u", {
    headers: {
      "x-a": "gr\xc3\xbc\xc3\x9f caf\xe9 \xff\xfe\xc3( \xed\xa0\x80 \xf0\x9f\x98\x80",
      "user-agent": "\xc0\xaf",
    },
  }),
  call("/p", { headers: { "x-forwarded-for": "10.1.2.3", "x-request-id": "11111111-2222-4333-8444-555555555555" } }),
];
const versions = ["HTTP/1.1", "HTTP/2"] as const;

/** A host that is down resets what waits for it. */
async function exchange(port: number, sent: string | Buffer): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const socket = net.connect(port, "127.0.0.1", () => socket.write(sent));
  socket.on("error", () => undefined).on("close", () => resolve());
  socket.resume();
  await promise;
}

/** Times, ports and ids are their kind alone. */
function comparable(entry: LogEntry): unknown {
  // Where there is no host ours has not set all headers of its own.
  const isHttp2 = (entry["protocolVersion"] as unknown) === "HTTP2";
  const hasHost = entry["request"]?.["path"] !== "/none";
  return JSON.parse(
    JSON.stringify(entry, (key, value: unknown) => {
      if (key === "portValue") return typeof value;
      if (key.startsWith("time") || key === "duration" || key === "startTime") return typeof value;
      if (key === "requestId" || key === "streamId") return typeof value;
      // Envoy counts fields of the connection, too.
      if (key === "responseHeadersBytes" || (key === "requestHeadersBytes" && !hasHost)) return typeof value;
      // How fields of HTTP/2 are encoded is each proxy's own affair (`byte-operators-parity.test.ts`).
      if (isHttp2 && /Wire|HeaderBytes/.test(key)) return typeof value;
      return value;
    }),
  );
}

interface Sent {
  readonly requests: readonly unknown[];
  readonly connections: readonly unknown[];
  readonly listener: readonly unknown[];
  readonly metadata: unknown;
  readonly path: unknown;
}

async function sentBy(side: Side): Promise<Sent> {
  service.messages.length = 0;
  service.calls.length = 0;
  for (const version of versions) {
    for (const each of calls) await clients[version](side.ports.get("main")!, each);
  }
  await exchange(side.ports.get("tcp")!, "GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n");
  await exchange(side.ports.get("tcp-down")!, "lost");
  await exchange(side.ports.get("hello")!, helloFrom({ extensions: serverName(Buffer.from("Shop.example")) }));
  const entries = (name: string): readonly unknown[] => service.entries(name).map(comparable);
  // Its bytes depend on how long the host took, and on which acknowledgements came before the end.
  const ofListener = (): readonly unknown[] =>
    service.entries("listener").map(({ commonProperties, connectionProperties }) => {
      for (const name of ["receivedBytes", "sentBytes"]) assert.ok(Number(connectionProperties![name]) > 40);
      // Envoy counts those on the wire for TCP proxies alone.
      const shown = Object.entries(commonProperties!).filter(([name]) => !name.startsWith("downstreamWireBytes"));
      return comparable({ commonProperties: Object.fromEntries(shown) });
    });
  await waitFor(
    () =>
      entries("requests").length === calls.length * versions.length &&
      entries("connections").length === 3 &&
      entries("listener").length === calls.length * versions.length,
    { what: "the entries", details: () => JSON.stringify(service.messages, undefined, 1) },
  );
  return {
    requests: entries("requests"),
    connections: entries("connections"),
    listener: ofListener(),
    metadata: service.calls.map((headers) => headers["x-tenant"]),
    path: service.calls[0]![":path"],
  };
}

test("both proxies send the same entries", async () => {
  const ours = await sentBy(sides.ours);
  const identifier = service.messages.find((message) => message.identifier !== undefined)!.identifier!;
  assert.deepEqual(identifier.node?.["locality"], { zone: "its zone" });
  const envoys = await sentBy(sides.envoy);
  for (const log of ["requests", "connections", "listener"] as const) {
    for (const [index, entry] of ours[log].entries()) assert.deepEqual(entry, envoys[log][index], `${log} ${index}`);
  }
  assert.match(
    JSON.stringify(ours.connections.at(-1)),
    /"tlsSniHostname":"shop.example","ja3Fingerprint":"[0-9a-f]{32}"/,
  );
  assert.equal(ours.path, envoys.path);
  assert.deepEqual(new Set(ours.metadata as string[]), new Set(["one"]));
});

test("secrets of queries do not reach the service where the log's name says which they are", async () => {
  service.messages.length = 0;
  const headers = { referer: "/from?code=c", "x-envoy-original-path": "/was?Token=t" };
  await clients["HTTP/1.1"](sides.ours.ports.get("main")!, call("/x?token=secret&b=c", { headers }));
  const entry = await waitFor(
    () => service.entries("redacted").find(({ request }) => request!["path"] === "/x?token=redacted&b=c"),
    {
      what: "the entry",
    },
  );
  assert.equal(entry["request"]!["referer"], "/from?code=redacted");
  assert.deepEqual(entry["request"]!["requestHeaders"], { ":method": "GET", referer: "/from?code=redacted" });
  assert.equal(entry["request"]!["originalPath"], "/was?Token=redacted");
  await waitFor(() => service.entries("requests").some(({ request }) => request!["path"] === "/x?token=secret&b=c"), {
    what: "the whole path in the other log",
  });
});

/** The others: `grpc-stream-sender.test.ts`. */
const behaviours: readonly ServiceBehaviour[] = ["refuses", "hangs"];
for (const behaviour of behaviours) {
  test(`requests are answered while the service ${behaviour}, and the counters tell what became of each entry`, async () => {
    const counter = /^access_logs\.grpc_access_log\.logs_(dropped|written)$/;
    const sum = async (): Promise<number> =>
      Object.values(await countersOf(sides.ours, counter)).reduce((total, value) => total + value, 0);
    const port = sides.ours.ports.get("main")!;
    await clients["HTTP/1.1"](port, call("/"));
    service.behaviour = behaviour;
    service.breakOff();
    const counted = await sum();
    for (let count = 0; count < 20; count += 1) assert.equal((await clients["HTTP/1.1"](port, call("/"))).status, 200);
    // What hangs takes as much as its window before anybody can know.
    await waitFor(async () => (await sum()) > counted, { what: "word of what became of them" });
    service.behaviour = "good";
    service.breakOff();
    service.messages.length = 0;
    await waitFor(
      async () => {
        assert.equal((await clients["HTTP/1.1"](port, call("/again"))).status, 200);
        return service.entries("requests").length > 0;
      },
      { what: "the log to arrive again" },
    );
  });
}
