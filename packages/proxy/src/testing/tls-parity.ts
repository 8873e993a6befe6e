// This proxy and a stock Envoy side by side behind TLS: calls with whatever a client may show or leave out, and what
// each made of them for the caller, the back end, the access logs and the statistics.
import fs from "node:fs";
import http from "node:http";
import net from "node:net";
import path from "node:path";
import tls from "node:tls";
import { waitFor } from "../../../../tests/tools/processes.ts";
import { type Counters, type Side, countersOf, startSides } from "./parity-pair.ts";
import { extension, fileAccessLog, loopback, router, staticCluster } from "./envoy-json.ts";

export interface TlsParityListener {
  readonly name: string;
  readonly listenerFilters?: readonly object[];
  readonly listener?: object;
  readonly chains: readonly TlsParityChain[];
}

export interface TlsParityChain {
  readonly name: string;
  readonly match?: object;
  /** DownstreamTlsContext; a plain chain without. */
  readonly tls?: object;
  readonly manager?: object;
}

export interface TlsParityCall {
  readonly listener: string;
  /** Plain text where it is false. */
  readonly tls?: tls.ConnectionOptions | false;
  readonly headers?: Readonly<Record<string, string>>;
  /** Sent raw instead of a request. */
  readonly bytes?: Buffer;
  /** The client ends its side once it hears anything: a handshake would wait for more. */
  readonly endsOnAnswer?: boolean;
}

export interface TlsParityOutcome {
  /** Status of the answer; 0 = the connection ended without one. */
  readonly status: number;
  /** Of the server that was met. */
  readonly serverName: string;
  /** What the back end got. */
  readonly headers: Readonly<Record<string, unknown>>;
  /** Lines of the request's log and of the connection's. */
  readonly request: string;
  readonly connection: string;
}

export interface TlsParityFormats {
  readonly request: string;
  readonly connection: string;
}

function bootstrapText(
  listeners: readonly TlsParityListener[],
  backEndPort: number,
  log: string,
  formats: TlsParityFormats,
): string {
  const manager = (chain: TlsParityChain): object => ({
    "@type": extension("filters.network.http_connection_manager.v3.HttpConnectionManager"),
    stat_prefix: chain.name,
    route_config: {
      name: chain.name,
      virtual_hosts: [
        {
          name: "all",
          domains: ["*"],
          routes: [{ match: { prefix: "/" }, route: { cluster: "app" } }],
          request_headers_to_add: [{ header: { key: "x-chain", value: chain.name } }],
        },
      ],
    },
    http_filters: [router],
    access_log: [fileAccessLog(log, `request\t${chain.name}\t${formats.request}\n`)],
    ...chain.manager,
  });
  return JSON.stringify({
    admin: { address: loopback(0) },
    static_resources: {
      listeners: listeners.map((listener) => ({
        name: listener.name,
        stat_prefix: listener.name,
        address: loopback(0),
        access_log: [fileAccessLog(log, `connection\t${listener.name}\t${formats.connection}\n`)],
        ...(listener.listenerFilters !== undefined && { listener_filters: listener.listenerFilters }),
        filter_chains: listener.chains.map((chain) => ({
          name: chain.name,
          ...(chain.match !== undefined && { filter_chain_match: chain.match }),
          filters: [{ name: "envoy.filters.network.http_connection_manager", typed_config: manager(chain) }],
          ...(chain.tls !== undefined && {
            transport_socket: {
              name: "envoy.transport_sockets.tls",
              typed_config: { "@type": extension("transport_sockets.tls.v3.DownstreamTlsContext"), ...chain.tls },
            },
          }),
        })),
        ...listener.listener,
      })),
      clusters: [staticCluster("app", [backEndPort])],
    },
  });
}

export interface TlsParityPair {
  run(calls: readonly TlsParityCall[]): Promise<{
    readonly ours: readonly TlsParityOutcome[];
    readonly envoys: readonly TlsParityOutcome[];
  }>;
  counters(name: RegExp): Promise<{ readonly ours: Counters; readonly envoys: Counters }>;
  stop(): Promise<void>;
}

export async function startTlsParityPair(
  listeners: readonly TlsParityListener[],
  formats: TlsParityFormats,
): Promise<TlsParityPair> {
  const backEnd = http.createServer((request, response) => response.end(JSON.stringify(request.headers)));
  const { ours, envoy, stop } = await startSides(backEnd, listeners.length, (port, log) =>
    bootstrapText(listeners, port, log, formats),
  );
  return {
    async run(calls) {
      const [own, envoys] = await Promise.all([runOn(ours, calls), runOn(envoy, calls)]);
      return { ours: own, envoys };
    },
    counters: async (name) => ({ ours: await countersOf(ours, name), envoys: await countersOf(envoy, name) }),
    stop,
  };
}

async function runOn(side: Side, calls: readonly TlsParityCall[]): Promise<readonly TlsParityOutcome[]> {
  const outcomes: TlsParityOutcome[] = [];
  let seen = 0;
  for (const call of calls) {
    const answer = await ask(side.ports.get(call.listener)!, call);
    const lines = await waitFor(
      () => {
        const fresh = logLines(side.log).slice(seen);
        return fresh.some((line) => line.startsWith("connection\t")) && fresh;
      },
      {
        what: `the end of a connection in ${path.basename(side.log)}, call ${outcomes.length}: ${JSON.stringify(call).slice(0, 300)}`,
      },
    );
    seen += lines.length;
    const line = (kind: string): string => lines.find((each) => each.startsWith(`${kind}\t`)) ?? "";
    outcomes.push({ ...answer, request: line("request"), connection: line("connection") });
  }
  return outcomes;
}

function logLines(file: string): readonly string[] {
  const text = fs.existsSync(file) ? fs.readFileSync(file, "utf8") : "";
  return text
    .slice(0, text.lastIndexOf("\n") + 1)
    .split("\n")
    .slice(0, -1);
}

type Answer = Pick<TlsParityOutcome, "status" | "serverName" | "headers">;

/** One connection with one request. */
function ask(port: number, call: TlsParityCall): Promise<Answer> {
  const { promise, resolve } = Promise.withResolvers<Answer>();
  const fields = Object.entries({ host: "main.test", connection: "close", ...call.headers });
  const request = `GET / HTTP/1.1\r\n${fields.map(([name, value]) => `${name}: ${value}\r\n`).join("")}\r\n`;
  const socket =
    call.tls === false
      ? net.connect({ port, host: "127.0.0.1" })
      : tls.connect({ port, host: "127.0.0.1", rejectUnauthorized: false, ...call.tls });
  let received = "";
  let serverName = "";
  socket.on(call.tls === false ? "connect" : "secureConnect", () => {
    if (socket instanceof tls.TLSSocket) serverName = socket.getPeerCertificate().subjectaltname ?? "";
    socket.write(call.bytes ?? request);
    if (call.endsOnAnswer === true) socket.once("data", () => socket.end());
  });
  socket.on("data", (data) => (received += data.toString("latin1")));
  socket.on("error", () => undefined);
  socket.on("close", () => {
    const status = Number(/^HTTP\/1\.1 (\d+)/.exec(received)?.[1] ?? 0);
    const body = received.slice(received.indexOf("\r\n\r\n") + 4).replace(/^[0-9a-f]+\r\n|\r\n0\r\n\r\n$/g, "");
    resolve({ status, serverName: status === 0 ? "" : serverName, headers: status === 200 ? headersOf(body) : {} });
  });
  return promise;
}

/** Differ between two proxies by nature. */
const ownHeaders = new Set(["x-request-id", "x-envoy-expected-rq-timeout-ms", "x-forwarded-for"]);

function headersOf(body: string): Readonly<Record<string, unknown>> {
  const headers = JSON.parse(body) as Record<string, unknown>;
  return Object.fromEntries(
    Object.entries(headers)
      .filter(([name]) => !ownHeaders.has(name))
      .sort(([a], [b]) => (a < b ? -1 : 1)),
  );
}
