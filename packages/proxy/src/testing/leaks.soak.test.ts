// A hundred thousand connections from many addresses, opened and dropped in every way: heap, descriptors and handles of
// the proxy end where they were.
import assert from "node:assert/strict";
import net from "node:net";
import { test, type TestContext } from "node:test";
import tls from "node:tls";
import { waitFor } from "../../../../tests/tools/processes.ts";
import type { Holdings } from "./proxy-program.ts";
import { type ProxyProcess, startProxyProcess } from "./proxy-process.ts";
import { testCertificate } from "../../../../tests/tools/certificates.ts";
import { extension, loopback, router, staticCluster } from "./envoy-json.ts";

const warmUpCount = 10_000;
const connectionCount = 100_000;
const atOnce = 200;
/** Of every hundred connections so many go to each listener. */
const shares = { http: 88, tcp: 8, tls: 4 } as const;
type ListenerName = keyof typeof shares;

/** Measured between two quiet looks at the same process: less than this is noise. */
const heapNoiseBytes = 3 * 1024 * 1024;

const head = (path_: string, more = ""): string => `GET ${path_} HTTP/1.1\r\nHost: leaks\r\n${more}\r\n`;
const answered = /\r\n\r\n/;

/** What a client does with its connection; resolves when it has had enough of it. */
interface Way {
  readonly name: string;
  readonly go: (socket: net.Socket) => Promise<void> | void;
  readonly ends: "fin" | "rst";
}

/** Resolves with the first bytes that match, or when the connection ends. */
function read(socket: net.Socket, wanted: RegExp = answered): Promise<void> {
  let text = "";
  return new Promise((resolve) => {
    socket.on("data", (chunk: Buffer) => {
      text = (text + chunk.toString("latin1")).slice(-4096);
      if (wanted.test(text)) resolve();
    });
    socket.once("close", () => resolve());
  });
}

const writes =
  (text: string) =>
  (socket: net.Socket): void =>
    void socket.write(text);
const asks =
  (text: string, wanted?: RegExp) =>
  (socket: net.Socket): Promise<void> => {
    socket.write(text);
    return read(socket, wanted);
  };

const httpWays: readonly Way[] = [
  { name: "nothing", go: () => undefined, ends: "fin" },
  { name: "nothing, cut", go: () => undefined, ends: "rst" },
  { name: "half a head", go: writes("GET / HTTP/1.1\r\nHo"), ends: "rst" },
  { name: "half a head, ended", go: writes("GET / HTTP/1.1\r\nHost: a\r\n"), ends: "fin" },
  { name: "a request", go: asks(head("/")), ends: "fin" },
  { name: "a request, cut behind its answer", go: asks(head("/")), ends: "rst" },
  { name: "a request, cut before its answer", go: writes(head("/")), ends: "rst" },
  { name: "a request that is never answered", go: writes(head("/hang")), ends: "rst" },
  { name: "an answer that is cut off", go: asks(head("/cut")), ends: "fin" },
  { name: "a back end that closes at once", go: asks(head("/close")), ends: "fin" },
  { name: "nobody behind the route", go: asks(head("/nobody")), ends: "fin" },
  { name: "no route", go: asks(head("/other")), ends: "fin" },
  { name: "a large answer, cut", go: asks(head("/large")), ends: "rst" },
  { name: "several at once", go: asks(head("/") + head("/") + head("/")), ends: "rst" },
  { name: "garbage", go: asks("\u0000\u0001garbage\r\n\r\n"), ends: "fin" },
  { name: "half a body", go: writes(head("/", "Content-Length: 1000\r\n").replace("GET", "POST") + "x"), ends: "rst" },
  {
    name: "half a chunk",
    go: writes(head("/", "Transfer-Encoding: chunked\r\n").replace("GET", "POST") + "ff\r\nx"),
    ends: "fin",
  },
  { name: "a last answer", go: asks(head("/", "Connection: close\r\n")), ends: "fin" },
];
const tcpWays: readonly Way[] = [
  { name: "nothing", go: () => undefined, ends: "rst" },
  { name: "an exchange", go: asks(head("/")), ends: "fin" },
  { name: "one side alone", go: writes("x"), ends: "fin" },
];
/** On a connection that speaks TLS; those without a handshake write to the plain socket. */
const tlsWays: readonly (Way & { readonly shakesHands: boolean })[] = [
  { name: "no hello", go: () => undefined, ends: "rst", shakesHands: false },
  { name: "half a hello", go: writes("\u0016\u0003\u0001\u0002"), ends: "rst", shakesHands: false },
  { name: "no TLS at all", go: asks(head("/")), ends: "fin", shakesHands: false },
  { name: "a request", go: asks(head("/")), ends: "fin", shakesHands: true },
  { name: "cut behind the handshake", go: () => undefined, ends: "rst", shakesHands: true },
];

/** Answers by path; `hang` never does. */
async function startBackEnd(t: TestContext): Promise<number> {
  const large = Buffer.alloc(1024 * 1024, "x");
  const server = net.createServer((socket) => {
    socket.on("error", () => undefined);
    socket.on("data", (data) => {
      const text = data.toString("latin1");
      if (text.includes("/hang") || !text.includes("HTTP/1.1")) return;
      if (text.includes("/close")) socket.destroy();
      else if (text.includes("/cut")) socket.end("HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf");
      else if (text.includes("/large")) {
        socket.write(`HTTP/1.1 200 OK\r\ncontent-length: ${large.length}\r\n\r\n`);
        socket.write(large);
      } else socket.write("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok");
    });
  });
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  t.after(() => server.close());
  return (server.address() as net.AddressInfo).port;
}

function bootstrapOf(backEndPort: number, identity: { readonly certificate: string; readonly key: string }): string {
  const cluster = (name: string, port: number): object =>
    staticCluster(name, [port], { common_http_protocol_options: { idle_timeout: "1s" } });
  const route = (prefix: string, name: string): object => ({
    match: { prefix },
    route: { cluster: name, timeout: "0s" },
  });
  const manager = {
    "@type": extension("filters.network.http_connection_manager.v3.HttpConnectionManager"),
    stat_prefix: "http",
    common_http_protocol_options: { idle_timeout: "1s" },
    request_headers_timeout: "1s",
    stream_idle_timeout: "1s",
    route_config: {
      virtual_hosts: [
        {
          name: "all",
          domains: ["*"],
          routes: [
            ...["/hang", "/cut", "/close", "/large"].map((prefix) => route(prefix, "app")),
            route("/nobody", "nobody"),
            { match: { path: "/" }, route: { cluster: "app" } },
          ],
        },
      ],
    },
    http_filters: [router],
  };
  const tcpProxy = {
    "@type": extension("filters.network.tcp_proxy.v3.TcpProxy"),
    stat_prefix: "tcp",
    cluster: "app",
    idle_timeout: "1s",
  };
  const tlsContext = {
    "@type": extension("transport_sockets.tls.v3.DownstreamTlsContext"),
    common_tls_context: {
      tls_certificates: [
        { certificate_chain: { inline_string: identity.certificate }, private_key: { inline_string: identity.key } },
      ],
    },
  };
  const listener = (name: ListenerName, filter: object, transport?: object): object => ({
    name,
    address: loopback(0),
    ...(name === "tls" && {
      listener_filters_timeout: "1s",
      listener_filters: [
        {
          name: "tls",
          typed_config: { "@type": extension("filters.listener.tls_inspector.v3.TlsInspector") },
        },
      ],
    }),
    filter_chains: [
      {
        filters: [{ name, typed_config: filter }],
        ...(transport !== undefined && {
          transport_socket: { name: "envoy.transport_sockets.tls", typed_config: transport },
          transport_socket_connect_timeout: "1s",
        }),
      },
    ],
  });
  return JSON.stringify({
    static_resources: {
      listeners: [listener("http", manager), listener("tcp", tcpProxy), listener("tls", manager, tlsContext)],
      // Port 1 of loopback has nobody.
      clusters: [cluster("app", backEndPort), cluster("nobody", 1)],
    },
  });
}

/** A source address for each number: the mesh's clients are many. */
const sourceOf = (number: number): string => `127.${1 + (number % 200)}.${(number >> 3) % 256}.${1 + (number % 250)}`;

async function connectOnce(ports: ProxyProcess<ListenerName>["ports"], number: number): Promise<void> {
  const share = number % 100;
  const name: ListenerName = share < shares.http ? "http" : share < shares.http + shares.tcp ? "tcp" : "tls";
  const ways = name === "http" ? httpWays : name === "tcp" ? tcpWays : tlsWays;
  const way = ways[Math.floor(number / 100 + share) % ways.length]!;
  const plain = net.connect({ host: "127.0.0.1", port: ports[name], localAddress: sourceOf(number) });
  const closed = new Promise<void>((resolve) => plain.once("close", () => resolve()));
  plain.on("error", () => undefined);
  const isOpen = await new Promise<boolean>((resolve) => {
    plain.once("connect", () => resolve(true));
    plain.once("close", () => resolve(false));
  });
  assert.ok(isOpen, `connection ${number} was refused`);
  let socket: net.Socket = plain;
  if ("shakesHands" in way && way.shakesHands === true) {
    const secured = tls.connect({ socket: plain, rejectUnauthorized: false });
    secured.on("error", () => undefined);
    await new Promise<void>((resolve) => {
      secured.once("secureConnect", () => resolve());
      secured.once("close", () => resolve());
    });
    socket = secured;
  }
  await way.go(socket);
  socket.resume();
  if (way.ends === "rst") plain.resetAndDestroy();
  else socket.end();
  // A half that only the proxy's time-outs end is left to them.
  await closed;
}

async function connectAll(ports: ProxyProcess<ListenerName>["ports"], from: number, count: number): Promise<void> {
  let next = from;
  const worker = async (): Promise<void> => {
    while (next < from + count) await connectOnce(ports, next++);
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
}

async function quiet(program: ProxyProcess<ListenerName>): Promise<Holdings> {
  return waitFor(
    async () => {
      const held = await program.holdings();
      return held.connections === 0 && held;
    },
    { what: "every connection to be over", timeoutMs: 30_000, intervalMs: 200 },
  );
}

test("connections leave nothing behind", async (t) => {
  const backEndPort = await startBackEnd(t);
  const program = await startProxyProcess<ListenerName>(
    t,
    bootstrapOf(backEndPort, await testCertificate({ names: ["DNS:localhost"] })),
  );
  await connectAll(program.ports, 0, warmUpCount);
  const before = await quiet(program);
  await connectAll(program.ports, warmUpCount, connectionCount);
  await quiet(program);
  const after = await waitFor(
    async () => {
      const held = await program.holdings();
      const isSame = held.descriptors <= before.descriptors && held.heapBytes < before.heapBytes + heapNoiseBytes;
      return isSame && held;
    },
    {
      what: "heap and descriptors to be where they were",
      timeoutMs: 15_000,
      intervalMs: 500,
      details: () => `before: ${JSON.stringify(before)}`,
    },
  );
  t.diagnostic(`before ${JSON.stringify(before)}`);
  t.diagnostic(`after ${JSON.stringify(after)}`);
  assert.deepEqual(after.resources, before.resources);
  assert.ok(after.externalBytes < before.externalBytes + heapNoiseBytes, "buffers are kept");
});
