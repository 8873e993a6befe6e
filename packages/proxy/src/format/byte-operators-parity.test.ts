// What requests take on the wire, counted as a stock Envoy counts it: over both versions on both sides, with bodies and
// trailers, tries that fail, and answers of our own.
import assert from "node:assert/strict";
import fs from "node:fs";
import http from "node:http";
import http2 from "node:http2";
import net from "node:net";
import { after, before, test } from "node:test";
import { exchangeStreams, type Http2Request } from "../../../../tests/tools/http2-client.ts";
import { freePort, waitFor } from "../../../../tests/tools/processes.ts";
import {
  connectionManager,
  extension,
  fileAccessLog,
  http2Options,
  loopback,
  staticCluster,
} from "../testing/envoy-json.ts";
import { type Side, type Sides, startSides } from "../testing/parity-pair.ts";

const counts = ["DOWNSTREAM", "UPSTREAM"].flatMap((side) =>
  ["WIRE", "HEADER", "DECOMPRESSED_HEADER"].flatMap((what) =>
    ["RECEIVED", "SENT"].map((way) => `${side}_${what}_BYTES_${way}`),
  ),
);
const sizes = ["request.size", "request.total_size", "response.size", "response.total_size"];
const operators = [...counts, ...sizes.map((name) => `CEL(${name})`)];
const refusingPort = await freePort();

/** Adds no header with a time in it. */
const quietRouter = {
  name: "router",
  typed_config: { "@type": extension("filters.http.router.v3.Router"), suppress_envoy_headers: true },
};

/** Of each row; the first of two finds a host that resets it, or answers 503, where the path says so. */
const tries = new Map<string, number>();
function answer(request: http.IncomingMessage | http2.Http2ServerRequest, response: http.ServerResponse): void {
  const { pathname } = new URL(request.url ?? "/", "http://any");
  const row = String(request.headers["x-row"]);
  tries.set(row, (tries.get(row) ?? 0) + 1);
  const isFirst = tries.get(row)! % 2 === 1;
  if (pathname === "/answered-again" && isFirst) {
    response.writeHead(503, { "x-why": "not yet" }).end("later");
    return;
  }
  if (pathname === "/reset-again" && isFirst) {
    request.socket.resetAndDestroy();
    return;
  }
  request.resume().on("end", () => {
    if (pathname === "/trailers") {
      response.writeHead(200, { trailer: "x-t" });
      response.write("body");
      response.addTrailers({ "x-t": "tail" });
      response.end();
    } else if (pathname === "/chunks") {
      response.write("one");
      response.end("two");
    } else if (pathname === "/nothing") response.writeHead(204).end();
    else if (pathname === "/hints") {
      response.writeEarlyHints({ link: "</a.css>; rel=preload" });
      response.end("ok");
    } else response.writeHead(200, { "content-length": "5", "x-b": "b" }).end("whole");
  });
}

const http2Host = http2.createServer((request, response) =>
  answer(request, response as unknown as http.ServerResponse),
);

function bootstrap(port: number, log: string): string {
  const line = `%REQ(X-ROW)%\t${operators.map((name) => `%${name}%`).join("\t")}\n`;
  const retry = { retry_on: "5xx,reset", num_retries: 1, retry_back_off: { base_interval: "0.001s" } };
  const route = (cluster: string) => ({ cluster, retry_policy: retry });
  const listener = (name: string, cluster: string): object => ({
    name,
    address: loopback(0),
    filter_chains: [
      {
        filters: [
          {
            name: "envoy.filters.network.http_connection_manager",
            typed_config: connectionManager(
              [
                { match: { path: "/gone" }, direct_response: { status: 410, body: { inline_string: "gone" } } },
                { match: { path: "/down" }, route: { cluster: "down" } },
                { match: { prefix: "/" }, route: route(cluster) },
              ],
              {
                http_filters: [quietRouter],
                http_protocol_options: { enable_trailers: true },
                access_log: [fileAccessLog(log, line)],
                upgrade_configs: [{ upgrade_type: "websocket" }],
              },
            ),
          },
        ],
      },
    ],
  });
  const upstreamTrailers = {
    typed_extension_protocol_options: {
      "envoy.extensions.upstreams.http.v3.HttpProtocolOptions": {
        "@type": "type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions",
        explicit_http_config: { http_protocol_options: { enable_trailers: true } },
      },
    },
  };
  const { port: http2Port } = http2Host.address() as net.AddressInfo;
  return JSON.stringify({
    admin: { address: loopback(0) },
    static_resources: {
      listeners: [listener("http1", "http1"), listener("http2", "http2")],
      clusters: [
        staticCluster("http1", [port], upstreamTrailers),
        staticCluster("http2", [http2Port], { typed_extension_protocol_options: http2Options }),
        staticCluster("down", [refusingPort]),
      ],
    },
  });
}

let sides: Sides;
let ours: Values;
let envoys: Values;
before(async () => {
  http2Host.listen(0, "127.0.0.1");
  await waitFor(() => http2Host.listening, { what: "the host of HTTP/2" });
  sides = await startSides(http.createServer(answer), 2, bootstrap);
  ours = await valuesOf(sides.ours);
  envoys = await valuesOf(sides.envoy);
});
after(async () => {
  await sides?.stop();
  http2Host.close();
});

interface Row {
  readonly name: string;
  readonly method?: string;
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: readonly string[];
  readonly trailers?: Readonly<Record<string, string>>;
}

const rows: readonly Row[] = [
  { name: "a request without a body", path: "/" },
  { name: "HEAD", method: "HEAD", path: "/" },
  { name: "a body with its length", method: "POST", path: "/", headers: { "content-length": "7" }, body: ["a whole"] },
  { name: "a body in chunks", method: "POST", path: "/", body: ["one", "and two"] },
  { name: "a body with trailers", method: "POST", path: "/", body: ["body"], trailers: { "x-last": "a trailer" } },
  { name: "an answer in chunks", path: "/chunks" },
  { name: "an answer with trailers", path: "/trailers" },
  { name: "an answer without content", path: "/nothing" },
  { name: "an answer behind hints", path: "/hints" },
  { name: "one of the proxy itself", path: "/gone" },
  { name: "one in the place of a host that refuses", path: "/down" },
  { name: "a try that is answered, and another", path: "/answered-again" },
  { name: "a try that is reset, and another", path: "/reset-again" },
];

async function overHttp1(port: number, row: string, { method = "GET", path, headers, body, trailers }: Row) {
  const isChunked = body !== undefined && headers?.["content-length"] === undefined;
  const fields = { host: "the.host", "x-row": row, connection: "close", ...headers };
  const lines = Object.entries({ ...fields, ...(isChunked && { "transfer-encoding": "chunked" }) });
  const tail = Object.entries(trailers ?? {}).map(([name, value]) => `${name}: ${value}\r\n`);
  const chunks = (body ?? []).map((part) => (isChunked ? `${part.length.toString(16)}\r\n${part}\r\n` : part));
  const text = `${method} ${path} HTTP/1.1\r\n${lines.map((line) => `${line.join(": ")}\r\n`).join("")}\r\n`;
  const socket = net.connect(port, "127.0.0.1");
  socket.write(text + chunks.join("") + (isChunked ? `0\r\n${tail.join("")}\r\n` : ""));
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  socket.resume().on("end", resolve).on("error", reject);
  await promise;
  socket.destroy();
}

async function overHttp2(port: number, row: string, { method = "GET", path, headers, body, trailers }: Row) {
  const request: Http2Request = {
    headers: {
      ":method": method,
      ":scheme": "http",
      ":authority": "the.host",
      ":path": path,
      "x-row": row,
      ...headers,
    },
    body: body ?? [],
    ...(trailers && { trailers }),
  };
  const socket = net.connect(port, "127.0.0.1");
  await new Promise((resolve) => socket.once("connect", resolve));
  await exchangeStreams(socket, [request]);
}

const linesOf = ({ log }: Side): readonly string[] =>
  (fs.existsSync(log) ? fs.readFileSync(log, "utf8") : "").split("\n").slice(0, -1);

/**
 * Operators of a row that are not compared, by why. HPACK's encoders choose each for itself what they index; names and
 * values are the same.
 */
function differing(
  { path, body, trailers }: Row,
  isHttp2: { down: boolean; up: boolean },
): ReadonlyMap<string, string> {
  const found = new Map<string, string>();
  const differs = (why: string, ...names: readonly string[]): void => names.forEach((name) => found.set(name, why));
  const encoder = "an encoder of HPACK, and whether the end has a frame of its own";
  const both = (name: string): readonly string[] => [`${name}_WIRE_BYTES`, `${name}_HEADER_BYTES`];
  const ways = (names: readonly string[], way: string): readonly string[] => names.map((name) => `${name}_${way}`);
  if (!isHttp2.down) differs("Envoy counts fields of the connection, too", "CEL(response.total_size)");
  if (isHttp2.down) differs(encoder, ...ways(both("DOWNSTREAM"), "SENT"));
  if (isHttp2.down && trailers !== undefined)
    differs("the client's encoder, which may have read our SETTINGS", ...ways(both("DOWNSTREAM"), "RECEIVED"));
  if (isHttp2.up) differs(encoder, ...ways(both("UPSTREAM"), "SENT"), ...ways(both("UPSTREAM"), "RECEIVED"));
  if ((body?.length ?? 0) > 1) differs("pieces of a body may be joined", "UPSTREAM_WIRE_BYTES_SENT");
  if (path === "/chunks") differs("pieces of a body may be joined", "DOWNSTREAM_WIRE_BYTES_SENT");
  if (path === "/hints") {
    const sent = ["WIRE", "HEADER", "DECOMPRESSED_HEADER"].map((what) => `DOWNSTREAM_${what}_BYTES_SENT`);
    differs("Envoy keeps hints to itself", ...sent);
  }
  if (!isHttp2.up && (path === "/hints" || path === "/answered-again")) {
    const why = "Envoy adds what it had counted before once more with each head of HTTP/1.1";
    differs(why, "UPSTREAM_DECOMPRESSED_HEADER_BYTES_RECEIVED");
  }
  return found;
}

const asked = [overHttp1, overHttp2].flatMap((down) =>
  ["http1", "http2"].flatMap((up) => rows.map((row) => ({ id: `${row.name}, ${down.name}, ${up}`, down, up, row }))),
);
type Values = ReadonlyMap<string, Readonly<Record<string, string>>>;

async function valuesOf(side: Side): Promise<Values> {
  for (const { id, down, up, row } of asked) await down(side.ports.get(up)!, id, row);
  const lines = await waitFor(() => linesOf(side).length === asked.length && linesOf(side), { what: "the lines" });
  const values = lines.map((line) => line.split("\t"));
  return new Map(
    values.map(([id = "", ...of]) => [id, Object.fromEntries(operators.map((name, index) => [name, of[index]!]))]),
  );
}

for (const { id, down, up, row } of asked) {
  test(id, () => {
    const except = differing(row, { down: down === overHttp2, up: up === "http2" });
    const compared = (values: Readonly<Record<string, string>>): object =>
      // Both have counted, or neither has.
      Object.fromEntries(
        operators.map((name) => [name, except.has(name) ? /^[1-9]/.test(values[name]!) : values[name]]),
      );
    assert.deepEqual(compared(ours.get(id)!), compared(envoys.get(id)!));
  });
}
