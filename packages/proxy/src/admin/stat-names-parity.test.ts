// The names of statistics beside a stock Envoy's, after the same row of events on both: what Envoy has and this proxy
// has not, and the other way round, is listed here, each with its reason.
import assert from "node:assert/strict";
import http from "node:http";
import http2 from "node:http2";
import net from "node:net";
import tls from "node:tls";
import { once } from "node:events";
import { after, before, test } from "node:test";
import { type TestCertificate, testCertificate } from "../../../../tests/tools/certificates.ts";
import { waitFor } from "../../../../tests/tools/processes.ts";
import { extension, http2Options, loopback, router, staticCluster } from "../testing/envoy-json.ts";
import { type Side, type Sides, startSides } from "../testing/parity-pair.ts";

const route = (prefix: string, action: object) => ({ match: { prefix }, route: action });
const manager = (prefix: string, more: object = {}) => ({
  name: "envoy.filters.network.http_connection_manager",
  typed_config: {
    "@type": extension("filters.network.http_connection_manager.v3.HttpConnectionManager"),
    stat_prefix: prefix,
    route_config: {
      name: prefix,
      virtual_hosts: [
        {
          name: "all",
          domains: ["*"],
          routes: [
            route("/retry", { cluster: "flaky", retry_policy: { retry_on: "5xx", num_retries: 1 } }),
            route("/slow", { cluster: "app", timeout: "0.2s" }),
            route("/dead", { cluster: "dead" }),
            route("/two", { cluster: "two" }),
            route("/zoned", { cluster: "zoned" }),
            route("/app", { cluster: "app" }),
            route("/canary", { cluster: "app" }),
            { match: { prefix: "/direct" }, direct_response: { status: 204 } },
            { match: { prefix: "/moved" }, redirect: { path_redirect: "/app" } },
          ],
        },
      ],
    },
    http_filters: [router],
    ...more,
  },
});

/** Its clients are the mesh's own. */
const inside = {
  use_remote_address: true,
  internal_address_config: { cidr_ranges: [{ address_prefix: "127.0.0.0", prefix_len: 8 }] },
};

const zonedHosts = (cluster_name: string, port: number) => ({
  cluster_name,
  endpoints: [{ locality: { region: "r", zone: "there" }, lb_endpoints: [{ endpoint: { address: loopback(port) } }] }],
});

function bootstrap(certificate: TestCertificate, port: number, twoPort: number) {
  const inline = (inline_string: string) => ({ inline_string });
  const transport_socket = {
    name: "envoy.transport_sockets.tls",
    typed_config: {
      "@type": extension("transport_sockets.tls.v3.DownstreamTlsContext"),
      common_tls_context: {
        tls_certificates: [
          { certificate_chain: inline(certificate.certificate), private_key: inline(certificate.key) },
        ],
      },
    },
  };
  const listener = (name: string, filter: object, more: object = {}) => ({
    name,
    address: loopback(0),
    filter_chains: [{ filters: [filter], ...more }],
  });
  const tcp = { "@type": extension("filters.network.tcp_proxy.v3.TcpProxy"), stat_prefix: "raw", cluster: "app" };
  return JSON.stringify({
    node: { id: "sidecar~127.0.0.1~a.b~b.svc.cluster.local", cluster: "a.b", locality: { region: "r", zone: "here" } },
    admin: { address: loopback(0) },
    static_resources: {
      listeners: [
        listener("web", manager("web")),
        listener("secure", manager("secure"), { transport_socket }),
        listener("inside", manager("inside", inside)),
        listener("raw", { name: "envoy.filters.network.tcp_proxy", typed_config: tcp }),
      ],
      clusters: [
        staticCluster("app", [port]),
        staticCluster("flaky", [port], { outlier_detection: { consecutive_5xx: 1, max_ejection_percent: 100 } }),
        staticCluster("dead", [1], { connect_timeout: "1s" }),
        staticCluster("zoned", [], { load_assignment: zonedHosts("zoned", port) }),
        staticCluster("two", [twoPort], { typed_extension_protocol_options: http2Options }),
      ],
    },
  });
}

function backEnd(): http.Server {
  const server = http.createServer((request, response) => {
    if (request.url === "/slow") return;
    response.statusCode = request.url === "/retry" ? 503 : 200;
    if (request.url === "/canary") response.setHeader("x-envoy-upstream-canary", "true");
    response.end("ok");
  });
  // A connection is used again, however long the next request takes to come.
  server.keepAliveTimeout = 0;
  return server;
}

async function get(port: number, path: string, options?: tls.ConnectionOptions): Promise<void> {
  const socket =
    options === undefined ? net.connect(port, "127.0.0.1") : tls.connect({ port, host: "127.0.0.1", ...options });
  socket.write(`GET ${path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n`);
  socket.resume();
  await once(socket, "close");
}

async function getHttp2(port: number): Promise<void> {
  const session = http2.connect(`http://127.0.0.1:${port}`);
  const stream = session.request({ ":path": "/two" });
  stream.resume().end();
  await once(stream, "close");
  session.close();
  await once(session, "close");
}

async function events({ ports }: Side): Promise<void> {
  const web = ports.get("web")!;
  for (const path of ["/app", "/retry", "/slow", "/dead", "/none", "/two", "/direct", "/moved"]) await get(web, path);
  for (const path of ["/zoned", "/canary"]) await get(web, path);
  const inner = ports.get("inside")!;
  for (const path of ["/app", "/retry", "/dead", "/zoned"]) await get(inner, path);
  await getHttp2(web);
  await get(ports.get("secure")!, "/app", { rejectUnauthorized: false });
  await get(ports.get("raw")!, "/app");
}

async function page(side: Side, target: string): Promise<string> {
  return await (await fetch(`http://127.0.0.1:${side.adminPort}${target}`)).text();
}

async function names(side: Side): Promise<ReadonlySet<string>> {
  const lines = (await page(side, "/stats")).split("\n").filter((line) => line !== "");
  return new Set(lines.map((line) => line.slice(0, line.indexOf(": ")).replace(/127\.0\.0\.1_\d+/, "ADDRESS")));
}

async function families(side: Side): Promise<ReadonlySet<string>> {
  const lines = (await page(side, "/stats/prometheus")).split("\n").filter((line) => line.startsWith("envoy_"));
  return new Set(
    lines.map((line) => {
      const [name = ""] = line.split(/[{ ]/, 1);
      const labels = [...line.matchAll(/([a-z_]+)="/g)].map(([, label]) => label!).sort();
      return `${name}{${labels.join(",")}}`;
    }),
  );
}

type Difference = readonly [names: RegExp, why: string];

const needsNone = "there is nothing of the kind here";
const notConfigurable = "needs a field that is refused, or warned of";
const alwaysZero = "Envoy has it, and adds nothing to it";

/** What Envoy has alone. */
const missing: readonly Difference[] = [
  [/^listener\.admin\.|^http\.admin\./, "the admin interface is no listener of the mesh"],
  [/^http\.async-client\./, "calls of filters count at their clusters alone"],
  [
    /\.worker_0\.|\.main_thread\.|^(server|main_thread|workers)\..*watchdog|workers_pinned/,
    "one thread, without a watchdog",
  ],
  [/^thread_local_cluster_manager\./, needsNone],
  [/^runtime\./, "no runtime layers"],
  [/\.circuit_breakers\.(high|default\.cx_pool_open)/, "one priority, and as many pools as there are hosts"],
  [/\.lb_|\.max_host_weight$|\.default\.total_match_count$/, "not counted by the load balancer"],
  [
    /\.outlier_detection\.ejections_(consecutive_5xx|success_rate|total|detected_degradation)$/,
    "names that Envoy keeps for older readers; the others are there",
  ],
  [
    /^cluster\.[^.]+\.(assignment_|update_|version$|warming_state$|bind_errors$)/,
    "of clusters with a subscription alone",
  ],
  [
    /^cluster\.[^.]+\.upstream_(cx_(connect|length)_ms|rq_per_cx)$/,
    "made with the first connection that came up, or ended",
  ],
  // Headers with underscores are let pass, METADATA is refused, HTTP/1.1 answers nobody floods with.
  [/(^|\.)http1\./, notConfigurable],
  [
    /underscores|\.rq_overload_local_reply$|rejected_via_ip_detection|_maintenance_mode$|retry_backoff_ratelimited/,
    notConfigurable,
  ],
  [/0_?rtt|early_data|_http3_|upstream_http3|http3_(active|total)/, "no HTTP/3, and no early data"],
  [/internal_redirect|preconnect|pool_overflow|upstream_queue_overloaded/, notConfigurable],
  [/\.rq_redirect$/, alwaysZero],
  [/_cx_[rt]x_bytes_buffered$/, "a gauge that each read and each write would have to set"],
  [/\.http2\.|^http2\./, "of the libraries nghttp2 and oghttp2, and of limits that are counted as header_overflow"],
  [/^tcp\.raw\.(downstream_cx_(drain|overload)_close|route_delayed_total)$/, "connections of TCP are not ended so"],
  [/^http\.[^.]+\.tracing\./, "made where something is traced"],
  [/^http\.[^.]+\.rs_too_large$/, "no filter keeps whole answers"],
  [/^listener\..*(extension_config_missing|ocsp|connections_accepted_per|cx_overflow)/, needsNone],
  [/\.ssl\.(ciphers|curves)\./, "what the two TLS libraries settle on"],
  [
    /^server\.(debug_assertion|envoy_bug|envoy_notif|hot_restart|parent_conn|seconds_until_first_ocsp|stats_recent|wip_protos|version)/,
    "of Envoy's build, its hot restart and its symbol table; OCSP",
  ],
  [
    /^cluster_manager\.(cluster_updated|update_)/,
    "changes of hosts that a main thread hands to its workers, one by one or merged within a window",
  ],
  [/^envoy\.overload_actions\.reset_high_memory_stream/, "no such action: what a stream may hold is bounded"],
  [/^server\.(static|dynamic)_unknown_fields$/, "told one by one, in the log and by the verdict"],
  [/^server\.dropped_stat_flushes$/, "told of each sink, by its flushes_skipped"],
  [/_reset_no_error$/, "a host's reset without an error counts with the others in upstream_rq_rx_reset"],
];

/** What this proxy has alone. */
const more: readonly Difference[] = [
  [/\.upstream_rq_[2-5]xx$/, "at 0 from the start, where Envoy's begin with the first answer"],
  [/\.upstream_rq_retry_active$/, "Envoy shows remaining_retries alone"],
  [/http2\.inbound_(continuation|reset|settings)_flood$/, "Envoy counts them elsewhere"],
  [/\.downstream_pre_cx_(server_first|silent)$/, "what protocol detection has waited for"],
  [/\.ssl\.(ciphers|curves)\./, "what the two TLS libraries settle on"],
  [/^overload\.envoy\.resource_monitors\.fixed_heap\.pressure$/, "watched whether it is asked for or not"],
];

/** Those of Prometheus that have no row of their own above. */
const moreFamilies: readonly Difference[] = [
  [/_upstream_rq_retry_active\{|_http2_inbound_\w+_flood\{|_pre_cx_(server_first|silent)\{/, "as above"],
  [/^envoy_overload_|^envoy_server_/, "as above"],
];

function unexplained(alone: readonly string[], table: readonly Difference[]): readonly string[] {
  return alone.filter((name) => !table.some(([pattern]) => pattern.test(name)));
}

const lacking = (of: ReadonlySet<string>, than: ReadonlySet<string>): readonly string[] =>
  [...of].filter((name) => !than.has(name)).sort();

let sides: Sides | undefined;
const two = http2.createServer((_request, response) => response.end("two"));

before(async () => {
  const certificate = await testCertificate({ commonName: "a" });
  two.listen(0, "127.0.0.1");
  await once(two, "listening");
  const { port: twoPort } = two.address() as net.AddressInfo;
  sides = await startSides(backEnd(), 4, (port) => bootstrap(certificate, port, twoPort));
  await events(sides.ours);
  await events(sides.envoy);
  // Envoy's worker hands its numbers over now and then.
  await waitFor(async () => /raw.*: 1$/m.test(await page(sides!.envoy, "/stats?filter=raw.downstream_cx_total")), {
    what: "Envoy's statistics",
  });
});

after(async () => {
  await sides?.stop();
  two.close();
});

test("names in /stats", async () => {
  const [ours, envoys] = [await names(sides!.ours), await names(sides!.envoy)];
  const [alone, ownAlone] = [lacking(envoys, ours), lacking(ours, envoys)];
  assert.deepEqual(unexplained(alone, missing), []);
  assert.deepEqual(unexplained(ownAlone, more), []);
  // A row that has become untrue goes.
  for (const [pattern] of missing)
    assert.ok(
      alone.some((name) => pattern.test(name)),
      String(pattern),
    );
});

test("names and labels in /stats/prometheus are Envoy's", async () => {
  const [ours, envoys] = [await families(sides!.ours), await families(sides!.envoy)];
  assert.deepEqual(unexplained(lacking(ours, envoys), moreFamilies), []);
});

test("the row of events has moved the same counters by as much", async () => {
  const filter = encodeURIComponent(
    "^(cluster\\.(app|flaky|dead|two|zoned)\\.(external\\.|internal\\.|retry\\.|canary\\.|zone\\.here\\.there\\.)?upstream_(rq_([2-5]xx|[2-5]\\d\\d|completed|total|timeout|retry)|cx_(total|http\\d_total|connect_fail))|http\\.(web|secure|inside)\\.(downstream_(rq_([1-5]xx|completed|total|http\\d_total)|cx_(total|http\\d_total|ssl_total))|no_route|rq_total|rq_direct_response)|listener.*downstream_rq_.*|(cluster|listener)_manager.*(added|modified|removed|active.*))$",
  );
  const moved = async (side: Side) => {
    const lines = (await page(side, `/stats?usedonly&filter=${filter}`)).split("\n");
    return lines
      .map((line) => line.replace(/127\.0\.0\.1_\d+/, "ADDRESS"))
      .filter((line) => !line.startsWith("listener.admin"));
  };
  assert.deepEqual((await moved(sides!.ours)).sort(), (await moved(sides!.envoy)).sort());
});
