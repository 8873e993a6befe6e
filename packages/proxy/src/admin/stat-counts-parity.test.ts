// How much each counter and gauge is moved by one event, beside a stock Envoy: connections that end from either side,
// with and without a request, and requests that fail.
import assert from "node:assert/strict";
import http from "node:http";
import http2 from "node:http2";
import net from "node:net";
import { EventEmitter, once } from "node:events";
import { after, before, test } from "node:test";
import { inTime, waitFor } from "../../../../tests/tools/processes.ts";
import { connectionManager, extension, http2Options, loopback, staticCluster } from "../testing/envoy-json.ts";
import { type Side, type Sides, startSides } from "../testing/parity-pair.ts";

const route = (prefix: string, action: object) => ({ match: { prefix }, route: action });

function bootstrap(port: number, twoPort: number) {
  const routes = [
    route("/two", { cluster: "two" }),
    route("/dead", { cluster: "dead" }),
    route("/timeout", { cluster: "app", timeout: "0.05s" }),
    route("/retry", { cluster: "app", retry_policy: { retry_on: "5xx", num_retries: 2 } }),
    route("/ws", { cluster: "app", upgrade_configs: [{ upgrade_type: "websocket" }] }),
    route("/", { cluster: "app", timeout: "0s" }),
  ];
  const manager = connectionManager(routes, {
    stat_prefix: "web",
    upgrade_configs: [{ upgrade_type: "websocket", enabled: false }],
    normalize_path: true,
    path_with_escaped_slashes_action: "REJECT_REQUEST",
    common_http_protocol_options: { idle_timeout: "3600s" },
    delayed_close_timeout: "0.05s",
  });
  const tcp = (cluster: string) => ({
    name: "envoy.filters.network.tcp_proxy",
    typed_config: { "@type": extension("filters.network.tcp_proxy.v3.TcpProxy"), stat_prefix: cluster, cluster },
  });
  const listener = (name: string, filter: object) => ({
    name,
    address: loopback(0),
    filter_chains: [{ filters: [filter] }],
  });
  return JSON.stringify({
    node: { id: "sidecar~127.0.0.1~a.b~b.svc.cluster.local", cluster: "a.b" },
    admin: { address: loopback(0) },
    static_resources: {
      listeners: [
        listener("web", { name: "envoy.filters.network.http_connection_manager", typed_config: manager }),
        listener("raw", tcp("raw")),
        listener("rawdead", tcp("rawdead")),
      ],
      clusters: [
        staticCluster("app", [port]),
        staticCluster("raw", [port]),
        staticCluster("rawdead", [1]),
        staticCluster("dead", [1]),
        staticCluster("two", [twoPort], { typed_extension_protocol_options: http2Options }),
      ],
    },
  });
}

/** Answers by path, and ends connections as it is asked to. */
function backEnd(): http.Server {
  const server = http.createServer((request, response) => {
    const { socket } = request;
    switch (request.url) {
      case "/drop":
        socket.destroy();
        return;
      case "/cut":
        response.writeHead(200, { "content-length": "10" }).write("abc", () => socket.end());
        return;
      case "/eof":
        response.useChunkedEncodingByDefault = false;
        response.writeHead(200, { connection: "close" }).end("ok");
        return;
      case "/closing":
        response.writeHead(200, { connection: "close", "content-length": "2" }).end("ok");
        return;
      case "/early":
        response.writeHead(200, { "content-length": "2" }).end("ok");
        return;
      case "/ok-then-end":
        response.writeHead(200, { "content-length": "2" }).end("ok", () => setImmediate(() => socket.end()));
        return;
      case "/retry":
        response.writeHead(503, { "content-length": "2" }).end("no");
        return;
      case "/hang":
      case "/timeout":
        return;
      default:
        response.writeHead(200, { "content-length": "2" }).end("ok");
    }
  });
  server.on("upgrade", (_request, socket) => {
    socket.write("HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\n");
    socket.on("data", (chunk) => socket.write(chunk));
    socket.on("end", () => socket.end());
    socket.on("error", () => socket.destroy());
  });
  server.keepAliveTimeout = 0;
  return server;
}

/** Tells a host to break off. */
const cuts = new EventEmitter();

const two = http2.createServer((request, response) => {
  // A new second is 23 bytes longer than one that stands in HPACK's table, and the two are asked one after the other.
  response.sendDate = false;
  switch (request.url) {
    case "/two/reset":
      request.stream.close(http2.constants.NGHTTP2_INTERNAL_ERROR);
      return;
    case "/two/cut":
      response.writeHead(200, { "content-type": "application/grpc" }).write("abc");
      cuts.once("now", () => request.stream.close(http2.constants.NGHTTP2_INTERNAL_ERROR));
      return;
    case "/two/drop":
      request.stream.session!.socket.destroy();
      return;
    case "/two/hang":
      return;
    default:
      response.end("two");
  }
});

/** Sends what it is given and waits for the answer, or for the end. */
async function talk(port: number, text: string, until: "answer" | "end"): Promise<net.Socket> {
  const socket = net.connect(port, "127.0.0.1");
  socket.setNoDelay(true).on("error", () => undefined);
  socket.write(text);
  let got = "";
  const { promise, resolve } = Promise.withResolvers<void>();
  socket.on("data", (chunk) => {
    got += chunk;
    if (until === "answer" && isWhole(got)) resolve();
  });
  socket.on("close", () => resolve());
  await inTime(promise, `the answer to ${text.slice(0, 20)}`);
  return socket;
}

/** Tells of requests that are not answered. */
const hangs = new EventEmitter();

const request = (path: string, more = "") => `GET ${path} HTTP/1.1\r\nhost: a\r\n${more}\r\n`;

function isWhole(answer: string): boolean {
  const headEnd = answer.indexOf("\r\n\r\n");
  if (headEnd < 0) return false;
  const bodyBytes = Number(/content-length: (\d+)/i.exec(answer)?.[1] ?? 0);
  return (
    answer.length - headEnd - 4 >= bodyBytes && (!/transfer-encoding/i.test(answer) || answer.endsWith("0\r\n\r\n"))
  );
}

interface Row {
  readonly name: string;
  readonly act: (side: Side) => Promise<unknown>;
}

type End = (socket: net.Socket) => unknown;
const ends: End = (socket) => socket.end();
const breaksOff: End = (socket) => socket.resetAndDestroy();
/** For the proxy to end it. */
const waits: End = (socket) => socket.destroyed || once(socket, "close");

const web =
  (path: string, end: End = ends, more = "") =>
  async ({ ports }: Side) =>
    await end(await talk(ports.get("web")!, request(path, more), "answer"));

const rows: readonly Row[] = [
  { name: "a request, and the client ends", act: web("/ok") },
  { name: "the same, and the client breaks off", act: web("/ok", breaksOff) },
  { name: "the client asks for the end", act: web("/ok", undefined, "connection: close\r\n") },
  { name: "the host ends with its answer", act: web("/closing") },
  { name: "the end is the answer's end", act: web("/eof") },
  { name: "the host ends a connection that waits", act: web("/ok-then-end") },
  { name: "the host breaks off in the place of an answer", act: web("/drop") },
  { name: "the host ends in the middle of an answer", act: web("/cut", waits) },
  { name: "no answer in time", act: web("/timeout") },
  { name: "no host there", act: web("/dead") },
  { name: "tries", act: web("/retry") },
  {
    name: "the client goes before the answer",
    act: async ({ ports }) => {
      const socket = net.connect(ports.get("web")!, "127.0.0.1").on("error", () => undefined);
      const heard = once(hangs, "one");
      socket.write(request("/hang"));
      await heard;
      socket.resetAndDestroy();
    },
  },
  { name: "a path that is none", act: web("*", waits) },
  { name: "a path that is refused", act: web("/a%2fb", waits) },
  { name: "an upgrade that is not allowed", act: web("/ok", waits, "upgrade: websocket\r\nconnection: upgrade\r\n") },
  {
    name: "an upgrade",
    act: web(
      "/ws",
      breaksOff,
      "upgrade: websocket\r\nconnection: upgrade\r\nsec-websocket-key: a\r\nsec-websocket-version: 13\r\n",
    ),
  },
  { name: "no HTTP", act: async ({ ports }) => talk(ports.get("web")!, "\0\0\0\r\n\r\n", "end") },
  { name: "over HTTP/2 to the host", act: web("/two/ok") },
  { name: "which resets the stream", act: web("/two/reset") },
  {
    name: "which resets a call of gRPC within its answer",
    act: async ({ ports }) => {
      const socket = net.connect(ports.get("web")!, "127.0.0.1").on("error", () => undefined);
      socket.write(request("/two/cut", "content-type: application/grpc\r\n"));
      await once(socket, "data");
      cuts.emit("now");
      await waits(socket.resume());
    },
  },
  { name: "which breaks off", act: web("/two/drop") },
  {
    name: "bytes of TCP, and the client ends",
    act: async ({ ports }) => (await talk(ports.get("raw")!, request("/ok"), "answer")).end(),
  },
  {
    name: "bytes of TCP, and the host ends",
    act: async ({ ports }) => talk(ports.get("raw")!, request("/closing"), "end"),
  },
  { name: "bytes of TCP, and no host", act: async ({ ports }) => talk(ports.get("rawdead")!, "a", "end") },
];

/**
 * What the one side does not have, by the reasons in stat-names-parity.test.ts; what the two do at other times; and
 * what asking for statistics moves.
 */
const excepted =
  /\.(external|retry)\.upstream_rq_|nghttp2_|_bytes_buffered$|_tx_bytes_total$|delayed_close_timeout$|^tcp\.raw\.upstream_flush_total$|^(listener|http)\.admin\.|^server\.|watchdog|\.worker_0\./;

async function values(side: Side): Promise<ReadonlyMap<string, number>> {
  const lines = (await (await fetch(`http://127.0.0.1:${side.adminPort}/stats`)).text()).split("\n");
  const found = lines.map((line) => /^(.+): (\d+)$/.exec(line)).filter((match) => match !== null);
  return new Map(found.map(([, name, value]) => [name!.replace(/127\.0\.0\.1_\d+/, "ADDRESS"), Number(value)]));
}

async function moves(side: Side, start: ReadonlyMap<string, number>): Promise<Readonly<Record<string, number>>> {
  const now = await values(side);
  const moved = [...now].map(([name, value]) => [name, value - (start.get(name) ?? 0)] as const);
  return Object.fromEntries(moved.filter(([name, change]) => change !== 0 && !excepted.test(name)));
}

let sides: Sides | undefined;
before(async () => {
  two.on("session", (session) => session.on("error", () => undefined)).listen(0, "127.0.0.1");
  await once(two, "listening");
  const server = backEnd();
  server.on("request", ({ url }) => url === "/hang" && hangs.emit("one"));
  sides = await startSides(server, 3, (port) => bootstrap(port, (two.address() as net.AddressInfo).port));
});

after(async () => {
  await sides?.stop();
  two.close();
});

for (const { name, act } of rows) {
  test(name, async () => {
    const { ours, envoy } = sides!;
    const [ownStart, theirStart] = [await values(ours), await values(envoy)];
    await act(ours);
    await act(envoy);
    let seen = "";
    await waitFor(
      async () => {
        const [own, theirs] = [await moves(ours, ownStart), await moves(envoy, theirStart)];
        const names = [...new Set([...Object.keys(own), ...Object.keys(theirs)])].filter(
          (each) => own[each] !== theirs[each],
        );
        seen = names.map((each) => `${each}: ${own[each]} and not ${theirs[each]}`).join("\n");
        return seen === "";
      },
      { what: "the same moves", details: () => seen },
    );
    assert.equal(seen, "");
  });
}
