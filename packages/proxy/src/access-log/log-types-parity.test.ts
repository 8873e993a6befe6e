// Lines of requests and connections that go on, of both proxies: at their begin, when a tunnel or a host stands, from
// time to time, and at the end; and the filter by these types.
import assert from "node:assert/strict";
import fs from "node:fs";
import http from "node:http";
import net from "node:net";
import { after, before, test } from "node:test";
import { waitFor } from "../../../../tests/tools/processes.ts";
import { extension, loopback, router, staticCluster } from "../testing/envoy-json.ts";
import { type Side, type Sides, startSides } from "../testing/parity-pair.ts";

const operators =
  "%ACCESS_LOG_TYPE% %REQ(:PATH)% %PROTOCOL% %RESPONSE_CODE% %RESPONSE_CODE_DETAILS% %RESPONSE_FLAGS% %BYTES_RECEIVED% " +
  "%BYTES_SENT% %ROUTE_NAME% %UPSTREAM_CLUSTER% %UPSTREAM_HOST% %UPSTREAM_REQUEST_ATTEMPT_COUNT% %RESP(X-B)% " +
  "%CONNECTION_TERMINATION_DETAILS% %DURATION% %REQUEST_DURATION% %RESPONSE_DURATION% %RESPONSE_TX_DURATION%";

function fileLog(path: string, filter?: object): object {
  return {
    name: "envoy.access_loggers.file",
    ...(filter && { filter: { log_type_filter: filter } }),
    typed_config: {
      "@type": extension("access_loggers.file.v3.FileAccessLog"),
      path,
      log_format: { text_format_source: { inline_string: `${operators}\n` } },
    },
  };
}

const interval = { access_log_flush_interval: "0.05s" };
const managers: Readonly<Record<string, object>> = {
  requests: {
    access_log_options: { flush_access_log_on_new_request: true, flush_log_on_tunnel_successfully_established: true },
  },
  periodic: { access_log_options: interval },
  older: { ...interval, flush_access_log_on_new_request: true },
};
const proxies: Readonly<Record<string, object>> = {
  connections: { access_log_options: { flush_access_log_on_start: true, flush_access_log_on_connected: true } },
  "periodic-connections": { access_log_options: interval },
  "older-connections": { ...interval, flush_access_log_on_connected: true },
};

const denying: object = {
  name: "envoy.filters.http.rbac",
  typed_config: {
    "@type": extension("filters.http.rbac.v3.RBAC"),
    rules: {
      action: "DENY",
      policies: {
        no: { permissions: [{ header: { name: "x-deny", present_match: true } }], principals: [{ any: true }] },
      },
    },
  },
};

function bootstrap(port: number, log: string): string {
  const logs = (name: string): readonly object[] => [
    fileLog(`${log}.${name}`),
    fileLog(`${log}.${name}.some`, { types: ["DownstreamStart", "TcpConnectionEnd"] }),
    fileLog(`${log}.${name}.others`, { types: ["DownstreamStart", "TcpConnectionEnd"], exclude: true }),
  ];
  const manager = (name: string): object => ({
    "@type": extension("filters.network.http_connection_manager.v3.HttpConnectionManager"),
    stat_prefix: name,
    delayed_close_timeout: "0.05s",
    upgrade_configs: [{ upgrade_type: "websocket" }, { upgrade_type: "CONNECT" }],
    route_config: {
      virtual_hosts: [
        {
          name: "all",
          domains: ["*"],
          routes: [
            {
              name: "tunnel",
              match: { connect_matcher: {} },
              route: { cluster: "app", upgrade_configs: [{ upgrade_type: "CONNECT", connect_config: {} }] },
            },
            { name: "gone", match: { path: "/gone" }, direct_response: { status: 410 } },
            { name: "rest", match: { prefix: "/" }, route: { cluster: "app" } },
          ],
        },
      ],
    },
    http_filters: [denying, router],
    access_log: logs(name),
    ...managers[name],
  });
  const proxy = (name: string): object => ({
    "@type": extension("filters.network.tcp_proxy.v3.TcpProxy"),
    stat_prefix: name,
    cluster: "app",
    access_log: logs(name),
    ...proxies[name],
  });
  const listener = (name: string, typed_config: object): object => ({
    name,
    address: loopback(0),
    filter_chains: [{ filters: [{ name: "last", typed_config }] }],
  });
  return JSON.stringify({
    admin: { address: loopback(0) },
    static_resources: {
      listeners: [
        ...Object.keys(managers).map((name) => listener(name, manager(name))),
        ...Object.keys(proxies).map((name) => listener(name, proxy(name))),
      ],
      clusters: [staticCluster("app", [port])],
    },
  });
}

/** Answers to /slow that wait. */
const waiting: http.ServerResponse[] = [];

let sides: Sides;
before(async () => {
  const host = http.createServer((request, response) => {
    response.setHeader("x-b", "b");
    if (request.url !== "/slow") return void response.end("ok");
    response.write("be");
    waiting.push(response);
  });
  host.on("upgrade", (request, socket: net.Socket) => {
    socket.on("error", () => undefined);
    if (request.url === "/refused") return void socket.end("HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n");
    socket.write("HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n");
    socket.on("data", (chunk: Buffer) => socket.end(chunk));
  });
  sides = await startSides(host, Object.keys(managers).length + Object.keys(proxies).length, bootstrap);
});
after(() => sides?.stop());

/** Sends `sent`, and `then` once the answer has begun; all that came until the end. */
async function exchange(port: number, sent: string, then: string | (() => void) = ""): Promise<string> {
  const { promise, resolve } = Promise.withResolvers<void>();
  let received = "";
  const socket = net.connect(port, "127.0.0.1", () => socket.write(sent));
  socket.once("data", () => {
    if (typeof then === "function") then();
    else if (then !== "") socket.write(then);
  });
  socket.setEncoding("latin1").on("data", (chunk: string) => (received += chunk));
  socket.on("error", () => undefined).on("close", () => resolve());
  socket.on("end", () => socket.end());
  await promise;
  return received;
}

const request = (path: string, more = ""): string =>
  `GET ${path} HTTP/1.1\r\nhost: a\r\n${more === "" ? "connection: close\r\n" : more}\r\n`;
const upgrade = "connection: upgrade\r\nupgrade: websocket\r\n";

/** Ports and digits of durations are their kind alone. */
const comparable = (line: string): string =>
  line
    .replace(/127\.0\.0\.1:\d+/, "host")
    .replace(/( (?:\d+|-)){4}$/, (times) => times.replace(/\d+/g, "n"))
    // To Envoy a tunnel that the host ends has no last byte.
    .replace(/( upstream_reset_after_response_started.*) \S+$/, "$1");

function linesOf({ log }: Side, name: string): readonly string[] {
  const file = `${log}.${name}`;
  return (fs.existsSync(file) ? fs.readFileSync(file, "utf8") : "").split("\n").slice(0, -1);
}

const types = (lines: readonly string[]): readonly string[] => lines.map((line) => line.split(" ")[0]!);

interface Row {
  readonly name: string;
  readonly listener: string;
  readonly sent: string;
  readonly answer?: string;
  readonly lineCount: number;
}

const rows: readonly Row[] = [
  { name: "a request", listener: "requests", sent: request("/"), lineCount: 2 },
  { name: "an answer of the route", listener: "requests", sent: request("/gone"), lineCount: 2 },
  { name: "a request that is refused", listener: "requests", sent: "GET / HTTP/1.1\r\n\r\n", lineCount: 1 },
  {
    name: "a request that a filter refuses",
    listener: "requests",
    sent: request("/", "x-deny: 1\r\nconnection: close\r\n"),
    lineCount: 2,
  },
  { name: "no request", listener: "requests", sent: "rubbish\r\n\r\n", lineCount: 1 },
  { name: "an upgrade", listener: "requests", sent: request("/up", upgrade), answer: "echo", lineCount: 3 },
  { name: "an upgrade that the host refuses", listener: "requests", sent: request("/refused", upgrade), lineCount: 2 },
  {
    name: "a connection by CONNECT",
    listener: "requests",
    sent: "CONNECT a:80 HTTP/1.1\r\nhost: a:80\r\n\r\n",
    answer: request("/through"),
    lineCount: 3,
  },
  { name: "a connection", listener: "connections", sent: request("/"), lineCount: 3 },
];

for (const { name, listener, sent, answer, lineCount } of rows) {
  test(`${name}: both write the same lines`, async () => {
    const seen = [sides.ours, sides.envoy].map(async (side) => {
      const lines = (more = ""): readonly string[] => linesOf(side, `${listener}${more}`);
      const counts = [lines().length, lines(".some").length, lines(".others").length] as const;
      await exchange(side.ports.get(listener)!, sent, answer);
      const isWhole = (): boolean =>
        lines().length - counts[0] >= lineCount &&
        lines(".some").length + lines(".others").length - counts[1] - counts[2] >= lineCount;
      await waitFor(isWhole, { what: "the lines", details: () => lines().slice(counts[0]).join("\n") });
      return {
        all: lines().slice(counts[0]).map(comparable),
        some: types(lines(".some").slice(counts[1])),
        others: types(lines(".others").slice(counts[2])),
      };
    });
    const [ours, envoys] = await Promise.all(seen);
    assert.deepEqual(ours, envoys);
    assert.equal(ours!.all.length, lineCount);
  });
}

for (const listener of ["periodic", "older", "periodic-connections", "older-connections"]) {
  test(`${listener}: both write the same line again and again while it lasts`, async () => {
    const seen: (readonly string[])[] = [];
    for (const side of [sides.ours, sides.envoy]) {
      const lines = (): readonly string[] => linesOf(side, listener);
      const periodic = (): readonly string[] => lines().filter((line) => /^\w+Periodic/.test(line));
      let begun = false;
      const done = exchange(side.ports.get(listener)!, request("/slow"), () => (begun = true));
      await waitFor(() => begun && periodic().length > 0, { what: "the answer's begin, and a line" });
      const known = periodic().length;
      const later = await waitFor(() => periodic()[known + 1], { what: "two more lines" });
      waiting.splice(0).forEach((response) => response.end("gin"));
      await done;
      await waitFor(() => lines().some((line) => /^\w+End/.test(line)), { what: "the last line" });
      // The answer may have begun behind the first, and have ended before the last.
      const first = lines().filter((line) => !/^\w+Periodic/.test(line));
      seen.push([...new Set([...first, later].map(comparable))]);
    }
    assert.deepEqual(seen[0], seen[1]);
  });
}
