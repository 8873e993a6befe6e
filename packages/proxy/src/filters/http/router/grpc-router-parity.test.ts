// What the router makes of gRPC on this proxy and on a stock Envoy: time-outs that client and host are told, retries by
// status, answers of the proxy's own, hosts that are ejected, and what is counted of them.
import assert from "node:assert/strict";
import fs from "node:fs";
import http from "node:http";
import http2 from "node:http2";
import { after, before, test } from "node:test";
import { waitFor } from "../../../../../../tests/tools/processes.ts";
import {
  extension,
  fileAccessLog,
  http2Options,
  loopback,
  router,
  staticCluster,
} from "../../../testing/envoy-json.ts";
import { countersOf, movedCounters, type Side, type Sides, startSides } from "../../../testing/parity-pair.ts";

/**
 * `/route/head/14/2`: status 14 in the head of the first two answers to one `x-call`, then none. `trailers` likewise;
 * `http/503/9` is a HTTP status, `cut` ends without a status, `reset` behind a message, `hang` never.
 */
function host(): http2.Http2Server {
  const server = http2.createServer();
  const counts = new Map<string, number>();
  server.on("stream", (stream: http2.ServerHttp2Stream, headers) => {
    const [, , how, value = "0", times = "9"] = String(headers[":path"]).split("/");
    const call = String(headers["x-call"]);
    const count = (counts.get(call) ?? 0) + 1;
    counts.set(call, count);
    const fails = count <= Number(times);
    const told = ["grpc-timeout", "x-envoy-expected-rq-timeout-ms", "x-envoy-retry-on", "x-envoy-retry-grpc-on"];
    const head = {
      "content-type": "application/grpc",
      "x-told": told.map((name) => headers[name] ?? "-").join(" "),
      "x-tries": String(count),
    };
    stream.on("error", () => undefined).resume();
    if (how === "hang") return;
    if (fails && how === "head") stream.respond({ ...head, "grpc-status": value }, { endStream: true });
    else if (fails && how === "http") stream.respond({ ...head, ":status": Number(value) }, { endStream: true });
    else {
      const endsInTrailers = how !== "cut" && how !== "reset";
      stream.respond(head, { waitForTrailers: endsInTrailers });
      stream.on("wantTrailers", () =>
        stream.sendTrailers({ "grpc-status": fails && how === "trailers" ? value : "0" }),
      );
      if (how !== "reset") {
        stream.end("message");
        return;
      }
      stream.write("message");
      // What is asked behind the message comes back when the peer has read it.
      stream.session!.ping(() => stream.close(http2.constants.NGHTTP2_INTERNAL_ERROR));
    }
  });
  return server;
}

const words = "cancelled,deadline-exceeded,internal,resource-exhausted,unavailable";
const backOff = { base_interval: "0.001s" };
const routes: Readonly<Record<string, object>> = {
  plain: { timeout: "70s" },
  bounded: { max_grpc_timeout: "50s", grpc_timeout_offset: "10s" },
  any: { max_grpc_timeout: "0s" },
  stream: { max_stream_duration: { grpc_timeout_header_max: "20s", grpc_timeout_header_offset: "5s" } },
  duration: { max_stream_duration: { max_stream_duration: "40s", grpc_timeout_header_max: "0s" } },
  retried: { timeout: "0s", retry_policy: { retry_on: words, num_retries: 2, retry_back_off: backOff } },
  once: { timeout: "0s", retry_policy: { retry_on: "unavailable", retry_back_off: backOff } },
  ejecting: { cluster: "ejecting" },
  lenient: { cluster: "lenient" },
  refused: { cluster: "refused" },
  missing: { cluster_header: "x-nobody" },
};

function bootstrap(port: number, log: string): string {
  const only = { grpc_status_filter: { statuses: ["OK", "UNAVAILABLE"], exclude: true } };
  const manager = {
    "@type": extension("filters.network.http_connection_manager.v3.HttpConnectionManager"),
    stat_prefix: "main",
    use_remote_address: true,
    internal_address_config: { cidr_ranges: [{ address_prefix: "127.0.0.0", prefix_len: 8 }] },
    route_config: {
      virtual_hosts: [
        {
          name: "all",
          domains: ["*"],
          routes: Object.entries(routes).map(([name, action]) => ({
            match: { prefix: `/${name}/` },
            route: { ...("cluster_header" in action ? {} : { cluster: "main" }), ...action },
          })),
        },
      ],
    },
    http_filters: [router],
    access_log: [
      fileAccessLog(log, `all ${logFormat}`),
      { ...fileAccessLog(log, `failed ${logFormat}`), filter: only },
    ],
  };
  const options = { typed_extension_protocol_options: http2Options };
  const outliers = { consecutive_5xx: 3, max_ejection_percent: 100, base_ejection_time: "600s", interval: "600s" };
  const filters = [{ name: "envoy.filters.network.http_connection_manager", typed_config: manager }];
  return JSON.stringify({
    admin: { address: loopback(0) },
    static_resources: {
      listeners: [{ name: "main", address: loopback(0), filter_chains: [{ filters }] }],
      clusters: [
        staticCluster("main", [port], options),
        ...["ejecting", "lenient"].map((name) =>
          staticCluster(name, [port], { ...options, outlier_detection: outliers, common_lb_config: noPanic }),
        ),
        staticCluster("refused", [1], options),
      ],
    },
  });
}

const noPanic = { healthy_panic_threshold: { value: 0 } };
const logFormat =
  "%REQ(x-call)% %RESPONSE_CODE% %RESPONSE_FLAGS% %GRPC_STATUS% %UPSTREAM_REQUEST_ATTEMPT_COUNT% %UPSTREAM_CLUSTER%\n";

interface Call {
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Asked only when the host has been ejected: Envoy's main thread tells its workers of that when it comes to it. */
  readonly ofEjected?: true;
}

const timeouts = ["", "100S", "30S", "10S", "5S", "0m", "100000000m", "1x", "30000000u", "1H"];
/** No time is left: Envoy asks the host all the same, and whoever is first answers. */
const overAtOnce: readonly Call[] = [
  { path: "/stream/trailers/0", headers: { "grpc-timeout": "5S" } },
  { path: "/stream/trailers/0", headers: { "grpc-timeout": "0m" } },
  { path: "/duration/trailers/0", headers: { "grpc-timeout": "0m" } },
];
const isOverAtOnce = (path: string, timeout: string): boolean =>
  overAtOnce.some((call) => call.path === path && call.headers?.["grpc-timeout"] === timeout);

const calls: readonly Call[] = [
  ...["plain", "bounded", "any", "stream", "duration"].flatMap((route) =>
    timeouts
      .filter((timeout) => !isOverAtOnce(`/${route}/trailers/0`, timeout))
      .map((timeout) => ({
        path: `/${route}/trailers/0`,
        headers: timeout === "" ? {} : { "grpc-timeout": timeout },
      })),
  ),
  { path: "/bounded/trailers/0", headers: { "content-type": "text/plain", "grpc-timeout": "10S" } },
  { path: "/bounded/trailers/0", headers: { "x-envoy-upstream-rq-timeout-ms": "8000" } },
  // Time-outs that are over: by the route, and by the client's own.
  { path: "/any/hang", headers: { "grpc-timeout": "50m" } },
  { path: "/stream/hang", headers: { "grpc-timeout": "5050m" } },
  ...Array.from({ length: 17 }, (_, status) => ({ path: `/retried/head/${status}/2` })),
  ...["/retried/head/14/9", "/retried/head/x/2", "/retried/head/14/1", "/retried/trailers/14/2"].map((path) => ({
    path,
  })),
  ...["/once/head/14/1", "/once/head/14/2", "/once/head/1/1", "/retried/http/503/1"].map((path) => ({ path })),
  ...[
    { "x-envoy-retry-grpc-on": "resource-exhausted" },
    { "x-envoy-retry-grpc-on": "resource-exhausted,nonsense", "x-envoy-max-retries": "3" },
    { "x-envoy-retry-grpc-on": "resource-exhausted", "x-envoy-max-retries": "0" },
    { "x-envoy-retry-on": "resource-exhausted" },
    { "x-envoy-retry-grpc-on": "5xx" },
  ].map((headers) => ({ path: "/plain/head/8/2", headers: { ...headers, "x-envoy-upstream-rq-timeout-ms": "0" } })),
  { path: "/plain/http/503/1", headers: { "x-envoy-retry-grpc-on": "5xx" } },
  // How calls end, as their hosts' statistics have it.
  ...["trailers/5", "trailers/13", "trailers/99", "head/5", "head/13", "cut", "reset", "http/404", "http/503"].map(
    (how) => ({ path: `/plain/${how}` }),
  ),
  ...["/refused/trailers/0", "/nowhere/trailers/0", "/missing/trailers/0"].map((path) => ({ path })),
  ...Array.from({ length: 5 }, () => ({ path: "/lenient/trailers/14" })),
  { path: "/lenient/head/14", headers: { "content-type": "text/plain" } },
  ...Array.from({ length: 2 }, () => ({ path: "/ejecting/head/14" })),
  { path: "/ejecting/head/5" },
  ...Array.from({ length: 3 }, () => ({ path: "/ejecting/head/13" })),
  { path: "/ejecting/head/13", ofEjected: true },
];

let sides: Sides;
before(async () => {
  sides = await startSides(host(), 1, bootstrap);
});
after(() => sides?.stop());

async function ask(side: Side, { path, headers = {}, ofEjected }: Call, index: number): Promise<unknown> {
  if (ofEjected) await waitFor(async () => /failed_outlier_check/.test(await hostsPage(side)), { what: "an ejection" });
  const { promise, resolve } = Promise.withResolvers<unknown>();
  const options = {
    host: "127.0.0.1",
    port: side.ports.get("main"),
    path,
    method: "POST",
    headers: { "content-type": "application/grpc", "x-call": String(index), ...headers },
    agent: false,
  };
  const request = http.request(options, (response) => {
    let body = "";
    response.setEncoding("latin1").on("data", (chunk: string) => (body += chunk));
    response
      .on("error", () => undefined)
      .on("close", () => {
        const { date: _date, "x-envoy-upstream-service-time": _time, ...rest } = response.headers;
        resolve(response.complete ? { status: response.statusCode, ...rest, body } : "cut off");
      });
  });
  // The head may have left before, or not.
  request.on("error", () => resolve("cut off")).end("request");
  return promise;
}

async function hostsPage({ adminPort }: Side): Promise<string> {
  return (await fetch(`http://127.0.0.1:${adminPort}/clusters`)).text();
}

/** Those of Envoy's old names, and of answers that no host gave, are not kept here. */
const counterNames =
  /^cluster\.\w+\.(upstream_rq_(rx_reset|retry|retry_success|retry_limit_exceeded|timeout|[24]xx)|outlier_detection\.ejections_(detected|enforced)_.*)$/;

async function outcomes(side: Side, name: "ours" | "envoy") {
  const answers: unknown[] = [];
  // Tries are counted by the call at the host, which both share.
  const offset = name === "ours" ? 0 : calls.length;
  for (const [index, call] of calls.entries()) answers.push({ call, answer: await ask(side, call, offset + index) });
  const read = (): readonly string[] =>
    (fs.existsSync(side.log) ? fs.readFileSync(side.log, "utf8") : "").split("\n").slice(0, -1);
  await waitFor(() => read().filter((line) => line.startsWith("all ")).length === calls.length, { what: "the log" });
  const log = read()
    // docs/differences-from-envoy.md: the flag of a time-out that is the client's, and whether a host is still asked.
    .map((line) => line.replace(" DT ", " - ").replace(/ DeadlineExceeded .*$/, " DeadlineExceeded"))
    .map((line) => line.replace(/^(\w+) (\d+)/, (_all, kind, call) => `${kind} ${Number(call) - offset}`))
    .toSorted();
  const hosts = (await hostsPage(side))
    .split("\n")
    .filter((line) => /::(rq_(success|error)|health_flags)::/.test(line));
  const counters = movedCounters(await countersOf(side, counterNames));
  return { answers, log, hosts: hosts.map((line) => line.replace(/127[\d.]+:\d+/, "")).toSorted(), counters };
}

test("both end gRPC calls alike", async () => {
  const ours = await outcomes(sides.ours, "ours");
  const envoys = await outcomes(sides.envoy, "envoy");
  assert.deepEqual(ours.answers, envoys.answers);
  assert.deepEqual(ours.log, envoys.log);
  assert.deepEqual(ours.hosts, envoys.hosts);
  assert.deepEqual(ours.counters, envoys.counters);
  assert.equal(ours.counters["cluster.main.upstream_rq_rx_reset"], 1);
});

test("who has no time left is answered at once", async () => {
  for (const call of overAtOnce) {
    const answer = (await ask(sides.ours, call, -1)) as Readonly<Record<string, unknown>>;
    assert.deepEqual([answer["grpc-status"], answer["x-tries"]], ["4", undefined]);
  }
});
