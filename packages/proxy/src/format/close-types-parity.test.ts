// What logs tell of how connections ended, by an end or by a reset, and of their round trips, beside a stock Envoy.
import assert from "node:assert/strict";
import fs from "node:fs";
import http from "node:http";
import net from "node:net";
import { EventEmitter, once } from "node:events";
import { after, before, test } from "node:test";
import { inTime, waitFor } from "../../../../tests/tools/processes.ts";
import { connectionManager, extension, fileAccessLog, loopback, staticCluster } from "../testing/envoy-json.ts";
import { type Side, type Sides, startSides } from "../testing/parity-pair.ts";

const format =
  "%RESPONSE_FLAGS%\t%DOWNSTREAM_DETECTED_CLOSE_TYPE%\t%UPSTREAM_DETECTED_CLOSE_TYPE%\t%DOWNSTREAM_CX_RTT%\n";

function bootstrap(port: number, log: string): string {
  const access_log = [fileAccessLog(`${log}.filter`, format)];
  const tcp = (cluster: string): object => ({
    "@type": extension("filters.network.tcp_proxy.v3.TcpProxy"),
    stat_prefix: cluster,
    cluster,
    access_log,
  });
  const routes = [
    { match: { path: "/direct" }, direct_response: { status: 204 } },
    { match: { path: "/dead" }, route: { cluster: "dead" } },
    { match: { prefix: "/" }, route: { cluster: "app", timeout: "0s" } },
  ];
  const filters: Readonly<Record<string, object>> = {
    web: connectionManager(routes, { access_log }),
    raw: tcp("app"),
    rawdead: tcp("dead"),
  };
  const listeners = Object.entries(filters).map(([name, typed_config]) => ({
    name,
    address: loopback(0),
    access_log: [fileAccessLog(`${log}.listener`, format)],
    filter_chains: [{ filters: [{ name: "last", typed_config }] }],
  }));
  const clusters = [staticCluster("app", [port]), staticCluster("dead", [1])];
  return JSON.stringify({ admin: { address: loopback(0) }, static_resources: { listeners, clusters } });
}

/** Tells of requests that hang. */
const hangs = new EventEmitter();
const host = http.createServer((request, response) => {
  const { socket } = request;
  switch (request.url) {
    case "/hang":
      hangs.emit("one");
      return;
    case "/end":
      socket.end();
      return;
    case "/reset":
      socket.resetAndDestroy();
      return;
    case "/half-then-reset":
      response.writeHead(200, { "content-length": "10" }).write("abc", () => hangs.emit("one"));
      hangs.once("now", () => socket.resetAndDestroy());
      return;
    default:
      response.end("ok");
  }
});
host.keepAliveTimeout = 0;

let sides: Sides;
before(async () => {
  sides = await startSides(host, 3, bootstrap);
});
after(() => sides?.stop());

type Act = (socket: net.Socket) => unknown;
interface Row {
  readonly name: string;
  readonly listener: "web" | "raw" | "rawdead";
  readonly path: string;
  /** What the client does once the host has the request, or it has the answer. */
  readonly act?: Act;
}
const ends: Act = (socket) => socket.end();
const resets: Act = (socket) => socket.resetAndDestroy();

const rows: readonly Row[] = [
  { name: "an answer without a host", listener: "web", path: "/direct", act: ends },
  { name: "a host that is not there", listener: "web", path: "/dead", act: ends },
  // Of HTTP, it is answered here, if it ends at once; Envoy takes it for gone.
  { name: "the client ends while it waits", listener: "raw", path: "/hang", act: ends },
  { name: "a host that is not there", listener: "rawdead", path: "/dead" },
  ...(["web", "raw"] as const).flatMap((listener) => [
    { name: "the client ends after its answer", listener, path: "/ok", act: ends },
    { name: "the client resets after its answer", listener, path: "/ok", act: resets },
    { name: "the client resets while it waits", listener, path: "/hang", act: resets },
    { name: "the host ends", listener, path: "/end" },
    { name: "the host resets", listener, path: "/reset" },
    { name: "the host resets within its answer", listener, path: "/half-then-reset", act: () => hangs.emit("now") },
  ]),
];

/** How long a round trip takes is the machine's to say. */
const linesOf = (file: string): readonly string[] =>
  (fs.existsSync(file) ? fs.readFileSync(file, "utf8") : "")
    .split("\n")
    .slice(0, -1)
    .map((line) => line.replace(/\t\d+$/, "\tmilliseconds"));

async function linesOfRow({ ports, log }: Side, { listener, path, act }: Row): Promise<readonly string[]> {
  const files = [`${log}.filter`, `${log}.listener`];
  const seen = files.map((file) => linesOf(file).length);
  const socket = net.connect(ports.get(listener)!, "127.0.0.1").on("error", () => undefined);
  const heard = /hang|half/.test(path) ? once(hangs, "one") : new Promise((resolve) => socket.once("data", resolve));
  socket.write(`GET ${path} HTTP/1.1\r\nhost: a\r\n\r\n`);
  socket.resume();
  const closed = new Promise((resolve) => socket.on("close", resolve));
  if (act !== undefined) {
    await inTime(heard, "the answer");
    act(socket);
  } else {
    // The proxy answers, or ends the connection.
    await inTime(Promise.race([heard, closed]), "the answer");
    socket.end();
  }
  await waitFor(() => files.every((file, index) => linesOf(file).length > seen[index]!), { what: "the lines" });
  socket.destroy();
  return files.flatMap((file, index) => linesOf(file).slice(seen[index]));
}

for (const row of rows) {
  test(`${row.listener}: ${row.name}`, async () => {
    const [ours, envoys] = [await linesOfRow(sides.ours, row), await linesOfRow(sides.envoy, row)];
    assert.deepEqual(ours, envoys);
    for (const line of ours) assert.match(line, /milliseconds$/);
  });
}
