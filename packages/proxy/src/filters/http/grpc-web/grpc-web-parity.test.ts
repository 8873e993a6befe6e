// gRPC-Web and the statistics of gRPC on this proxy and on a stock Envoy: what the client gets, what the host is told,
// the access log and the counters.
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

const message = Buffer.from([0, 0, 0, 0, 2, 104, 105]);
const question = Buffer.from([0, 0, 0, 0, 1, 65]);

/** `/svc.Echo/5` ends with that status in its trailers, `/svc.Head/5` in its head; `/svc.Html/404` is no gRPC. */
function host(): http2.Http2Server {
  const server = http2.createServer();
  server.on("stream", (stream: http2.ServerHttp2Stream, headers) => {
    const [, service, value = ""] = String(headers[":path"]).split("?")[0]!.split("/");
    stream.on("error", () => undefined);
    if (service === "svc.Head") {
      stream.respond({ "content-type": "application/grpc", "grpc-status": value }, { endStream: true });
    } else if (service === "svc.Html") {
      stream.respond({ ":status": Number(value), "content-type": "text/html" });
      stream.end("no gRPC ~%é");
    } else if (service === "svc.Empty") {
      stream.respond({ ":status": Number(value) }, { endStream: true });
    } else if (service === "svc.Cut") {
      stream.respond({ "content-type": "application/grpc" });
      stream.end(message);
    } else {
      const told = ["content-type", "te", "grpc-accept-encoding", "content-length", "accept"].map(
        (name) => headers[name] ?? "-",
      );
      stream.respond({ "content-type": "application/grpc", "x-told": told.join(" ") }, { waitForTrailers: true });
      stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": value, "x-trailer": "a: b" }));
      let received = 0;
      stream.on("data", (chunk: Buffer) => (received += chunk.length));
      stream.on("end", () => {
        stream.write(message);
        stream.end(Buffer.from([0, 0, 0, 0, 1, received % 256]));
      });
    }
  });
  return server;
}

function bootstrap(port: number, log: string): string {
  const grpcStats = (settings: object): object => ({
    name: "stats",
    typed_config: { "@type": extension("filters.http.grpc_stats.v3.FilterConfig"), ...settings },
  });
  const listener = (name: string, clusterName: string, settings: object): object => ({
    name,
    address: loopback(0),
    filter_chains: [
      {
        filters: [
          {
            name: "envoy.filters.network.http_connection_manager",
            typed_config: {
              "@type": extension("filters.network.http_connection_manager.v3.HttpConnectionManager"),
              stat_prefix: name,
              route_config: {
                virtual_hosts: [
                  {
                    name: "all",
                    domains: ["*"],
                    routes: [
                      {
                        match: { prefix: "/svc.Local" },
                        direct_response: { status: 503, body: { inline_string: "lo~cal% é" } },
                      },
                      { match: { prefix: "/svc.Refused" }, route: { cluster: "refused" } },
                      { match: { prefix: "/" }, route: { cluster: clusterName } },
                    ],
                  },
                ],
              },
              http_filters: [
                { name: "web", typed_config: { "@type": extension("filters.http.grpc_web.v3.GrpcWeb") } },
                grpcStats(settings),
                router,
              ],
              access_log: [fileAccessLog(log, logFormat)],
            },
          },
        ],
      },
    ],
  });
  const all = { emit_filter_state: true, stats_for_all_methods: true, replace_dots_in_grpc_service_name: true };
  const listed = {
    individual_method_stats_allowlist: { services: [{ name: "svc.Echo", method_names: ["0", "7"] }] },
    enable_upstream_stats: true,
  };
  const bare = { stats_for_all_methods: false };
  const options = { typed_extension_protocol_options: http2Options };
  return JSON.stringify({
    admin: { address: loopback(0) },
    static_resources: {
      listeners: [listener("all", "calls", all), listener("listed", "listed", listed), listener("bare", "bare", bare)],
      clusters: [
        ...["calls", "listed", "bare"].map((name) => staticCluster(name, [port], options)),
        staticCluster("refused", [1], options),
      ],
    },
  });
}

const state = "%FILTER_STATE(envoy.filters.http.grpc_stats)% %FILTER_STATE(envoy.filters.http.grpc_stats:PLAIN)%";
const logFormat = `%REQ(x-call)% %RESPONSE_CODE% %RESPONSE_CODE_DETAILS% ${state}\n`;

interface Call {
  readonly name: string;
  readonly path: string;
  readonly type: string;
  readonly listener?: "listed" | "bare";
  readonly accept?: string;
  readonly body?: string | Buffer;
}

const web = "application/grpc-web+proto";
const text = "application/grpc-web-text";
const calls: readonly Call[] = [
  ...["/svc.Echo/0", "/svc.Echo/5", "/svc.Echo/99", "/a.b/3?q=1", "/one", "/a/b/c"].map((path) => ({
    path,
    type: web,
  })),
  ...["/svc.Head/7", "/svc.Html/404", "/svc.Html/200", "/svc.Empty/503", "/svc.Cut/0", "/svc.Local/1"].flatMap((path) =>
    [web, "application/grpc"].map((type) => ({ path, type })),
  ),
  { path: "/svc.Refused/1", type: web },
  { path: "/svc.Refused/1", type: "application/grpc" },
  { path: "/svc.Echo/0", type: "application/grpc" },
  { path: "/svc.Echo/0", type: "application/grpc+json" },
  { path: "/svc.Html/200", type: "text/plain" },
  { path: "/svc.Echo/0", type: "application/grpc-web" },
  { path: "/svc.Echo/0", type: "application/grpc", body: Buffer.concat([question, question, question]) },
  { path: "/svc.Echo/0", type: text, accept: text, body: question.toString("base64") },
  { path: "/svc.Echo/0", type: `${text}+proto`, accept: `${text}+proto`, body: question.toString("base64") },
  { path: "/svc.Echo/0", type: text, body: question.toString("base64") },
  { path: "/svc.Echo/0", type: web, accept: text },
  { path: "/svc.Head/7", type: web, accept: text },
  ...["AAA", "AAAA!AAA", "AB==", "A===", "===="].map((body) => ({ path: "/svc.Echo/0", type: text, body })),
  // What a page may make up: trailers of its own, compression that nobody named, too little, too much.
  ...[
    [0x80, 0, 0, 0, 3, 97, 58, 49],
    [1, 0, 0, 0, 1, 65],
    [0, 0, 0, 0, 9, 65],
    [0, 255, 255, 255, 255, 65],
    [255],
  ].flatMap((frame) => [
    { path: "/svc.Echo/0", type: web, body: Buffer.from(frame) },
    { path: "/svc.Echo/0", type: text, body: Buffer.from(frame).toString("base64") },
  ]),
  ...(["listed", "bare"] as const).flatMap((listener) =>
    ["/svc.Echo/0", "/svc.Echo/1", "/svc.Head/7", "/one"].map((path) => ({ path, type: "application/grpc", listener })),
  ),
].map((call) => ({ ...call, name: `${call.path} ${call.type} ${"accept" in call ? call.accept : ""}` }));

let sides: Sides;
before(async () => {
  sides = await startSides(host(), 3, bootstrap);
});
after(() => sides?.stop());

async function ask({ ports }: Side, call: Call, index: number): Promise<unknown> {
  const { promise, resolve, reject } = Promise.withResolvers<unknown>();
  const { path, type, accept, body = question, listener = "all" } = call;
  const headers = { "content-type": type, "x-call": String(index), ...(accept !== undefined && { accept }) };
  const options = { host: "127.0.0.1", port: ports.get(listener), path, method: "POST", headers, agent: false };
  const request = http.request(options, (response) => {
    const chunks: Buffer[] = [];
    response.on("data", (chunk: Buffer) => chunks.push(chunk));
    response.on("end", () => {
      const { date: _date, "x-envoy-upstream-service-time": _time, ...rest } = response.headers;
      resolve({ status: response.statusCode, ...rest, body: Buffer.concat(chunks).toString("latin1") });
    });
  });
  request.on("error", reject).end(body);
  return promise;
}

async function logged({ log }: Side): Promise<readonly string[]> {
  const read = (): readonly string[] =>
    (fs.existsSync(log) ? fs.readFileSync(log, "utf8") : "").split("\n").slice(0, -1);
  await waitFor(() => read().length === calls.length, { what: "the access log" });
  return read();
}

test("both give the same answers, tell hosts the same, log and count alike", async () => {
  const [ours, envoys]: unknown[][] = [[], []];
  for (const [index, call] of calls.entries()) {
    ours!.push({ call, answer: await ask(sides.ours, call, index) });
    envoys!.push({ call, answer: await ask(sides.envoy, call, index) });
  }
  assert.deepEqual(ours, envoys);
  const [ourLog, envoyLog] = [await logged(sides.ours), await logged(sides.envoy)];
  // Which words the transport has is another table's.
  const plain = (line: string): string => line.replace(/_started\{[^ ]*/, "");
  assert.deepEqual(ourLog.map(plain), envoyLog.map(plain));
  const counted = async (side: Side) => movedCounters(await countersOf(side, /\.grpc(-web)?\./));
  const ourCounters = await counted(sides.ours);
  assert.deepEqual(ourCounters, await counted(sides.envoy));
  assert.equal(ourCounters["cluster.calls.grpc.svc_Echo.5.failure"], 1);
});
