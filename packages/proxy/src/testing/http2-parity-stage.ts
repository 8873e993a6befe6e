// Clients and hosts of HTTP/2 that say each frame themselves, with this proxy and a stock Envoy between them: what a
// row of the parity tables says, and what became of it.
import fs from "node:fs";
import net from "node:net";
import os from "node:os";
import path from "node:path";
import { once } from "node:events";
import { inTime, waitFor } from "../../../../tests/tools/processes.ts";
import { errorCodes, frameFlags, frameTypes, maxInteger, settingIds } from "../codec/http2/frame.ts";
import { extension, fileAccessLog, loopback, router, staticCluster } from "./envoy-json.ts";
import { emptySettings, frame, Http2Peer, plainFields, settingFrame, uint32 } from "./http2-peer.ts";
import { countersOf, type Side, startEnvoy, startOurs } from "./parity-pair.ts";

const { endHeaders, endStream, ack } = frameFlags;

/**
 * What one row led to: what each client's connection and each host's were told, and path, status, flags and details of
 * each request, by path. Counters are those that are not 0, of the names that are compared.
 */
export type Http2Outcome = readonly [
  clients: string,
  hosts: string,
  log: string,
  counters: Readonly<Record<string, number>>,
];

export interface Http2Row {
  readonly name: string;
  readonly manager?: object;
  readonly route?: object;
  readonly cluster?: object;
  /** `common_http_protocol_options` and `http2_protocol_options` of the cluster. */
  readonly common?: object;
  readonly http2?: object;
  /** The host's own, told at once. */
  readonly hostSettings?: Buffer;
  /** Neither PING nor SETTINGS is answered by the client, or by the host. */
  readonly silent?: "client" | "host";
  play(exchange: Exchange): Promise<void>;
  expected(isOurs: boolean): Http2Outcome;
}

const managers = (
  "rq_tx_reset rq_rx_reset rq_idle_timeout rq_max_duration_reached rq_timeout rq_header_timeout " +
  "cx_max_duration_reached cx_max_requests_reached cx_idle_timeout"
).split(" ");
const clusters = (
  "rq_rx_reset rq_tx_reset rq_retry rq_retry_success rq_retry_overflow rq_retry_limit_exceeded rq_pending_overflow " +
  "rq_active_overflow rq_timeout cx_overflow cx_idle_timeout cx_max_requests cx_max_duration_reached cx_close_notify"
).split(" ");
const countedNames = [
  ...managers.map((name) => ["http", `downstream_${name}`] as const),
  ...clusters.map((name) => ["cluster", `upstream_${name}`] as const),
  ["cluster", "http2.keepalive_timeout"] as const,
];
/** Compared only where a row names it: each stream that is not whole counts. */
const furtherName = "downstream_rq_rx_reset";

const codeNames = new Map<number, string>(Object.entries(errorCodes).map(([name, code]) => [code, name]));

/** All that came on a connection but windows, settings and pings: stream by stream, then what is about all. */
function told(peer: Http2Peer): string {
  const streams = new Map<number, string[]>();
  const others: string[] = [];
  let heads = 0;
  for (const { type, flags, streamId, payload } of peer.frames) {
    const lines = streams.get(streamId) ?? [String(streamId)];
    if (streamId > 0) streams.set(streamId, lines);
    if (type === frameTypes.headers) {
      const { fields } = peer.heads[heads++]!;
      lines.push(`${fields.get(":status") ?? fields.get(":path")}`);
    } else if (type === frameTypes.rstStream) lines.push(`${codeNames.get(payload.readUInt32BE(0))}`);
    else if (type === frameTypes.goAway) {
      const last = payload.readUInt32BE(0);
      others.push(`goAway ${last === maxInteger ? "any" : last} ${codeNames.get(payload.readUInt32BE(4))}`);
    }
    const canEnd = type === frameTypes.headers || type === frameTypes.data;
    if (canEnd && (flags & endStream) !== 0) lines.push("end");
  }
  if (peer.isClosed) others.push("closed");
  const byId = [...streams].toSorted(([a], [b]) => a - b).filter(([, lines]) => lines.length > 1);
  return [...byId.map(([, lines]) => lines.join(" ")), ...others].join(", ");
}

/** Answers what a peer has to, until the connection ends. */
function serve(peer: Http2Peer): void {
  let seen = 0;
  peer.socket.on("data", () => {
    for (const { type, flags, payload } of peer.frames.slice(seen)) {
      if ((flags & ack) !== 0) continue;
      if (type === frameTypes.settings) peer.send(frame(type, ack, 0));
      if (type === frameTypes.ping) peer.send(frame(type, ack, 0, payload));
    }
    seen = peer.frames.length;
  });
}

/** The two ends of one row on one side. */
export class Exchange {
  readonly isOurs: boolean;
  readonly clients: Http2Peer[] = [];
  readonly hosts: Http2Peer[] = [];
  readonly #row: Http2Row;
  readonly #server: net.Server;
  #onChange: (() => void)[] = [];
  readonly #onHead = new Map<string, (peer: Http2Peer, streamId: number) => void>();
  #port = 0;
  #adminPort = 0;
  requests = 0;

  private constructor(row: Http2Row, isOurs: boolean) {
    this.#row = row;
    this.isOurs = isOurs;
    this.#server = net.createServer((socket) => {
      const peer = Http2Peer.accept(socket, (from, streamId) => {
        const { fields } = from.heads.at(-1)!;
        this.#onHead.get(fields.get(":path") ?? "")?.(from, streamId);
      });
      peer.send(row.hostSettings ?? emptySettings);
      this.#adopt(peer, row.silent !== "host");
      this.hosts.push(peer);
    });
  }

  static async start(row: Http2Row, isOurs: boolean): Promise<Exchange> {
    const exchange = new Exchange(row, isOurs);
    exchange.#server.listen(0, "127.0.0.1");
    await once(exchange.#server, "listening");
    return exchange;
  }

  get hostPort(): number {
    return (this.#server.address() as net.AddressInfo).port;
  }

  play(port: number, adminPort: number): Promise<void> {
    this.#port = port;
    this.#adminPort = adminPort;
    return this.#row.play(this);
  }

  async open(): Promise<Http2Peer> {
    const peer = await Http2Peer.open(this.#port);
    this.#adopt(peer, this.#row.silent !== "client");
    this.clients.push(peer);
    return peer;
  }

  #adopt(peer: Http2Peer, isServing: boolean): void {
    if (isServing) serve(peer);
    for (const event of ["data", "close"]) {
      peer.socket.on(event, () => {
        for (const wake of this.#onChange.splice(0)) wake();
      });
    }
  }

  /** To the admin pages. */
  async post(page: string): Promise<void> {
    const response = await fetch(`http://127.0.0.1:${this.#adminPort}${page}`, { method: "POST" });
    if (!response.ok) throw new Error(`${page}: ${response.status}`);
  }

  /** A request, which the client ends with its head unless it is `open`. */
  ask(client: Http2Peer, streamId: number, target: string, isOpen = false): void {
    this.requests += 1;
    client.send(requestHead(streamId, target, endHeaders | (isOpen ? 0 : endStream)));
  }

  /** What the host does with each request of that path. */
  on(target: string, act: (host: Http2Peer, streamId: number) => void): void {
    this.#onHead.set(target, act);
  }

  /** Where the host has that request. */
  async at(target: string): Promise<{ readonly host: Http2Peer; readonly streamId: number }> {
    const find = () =>
      this.hosts
        .flatMap((host) => host.heads.map(({ streamId, fields }) => ({ host, streamId, fields })))
        .find(({ fields }) => fields.get(":path") === target);
    await this.until(() => find() !== undefined, target);
    return find()!;
  }

  async until(condition: () => boolean, what: string): Promise<void> {
    while (!condition()) {
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#onChange.push(resolve);
      await inTime(promise, `${what} behind ${this.describe()}`);
    }
  }

  /** The first client has been told it. */
  tells(text: RegExp): Promise<void> {
    return this.until(() => text.test(this.told("clients")), String(text));
  }

  /** The hosts have. */
  tellsHosts(text: RegExp): Promise<void> {
    return this.until(() => text.test(this.told("hosts")), String(text));
  }

  told(ends: "clients" | "hosts"): string {
    return this[ends].map(told).join(" | ");
  }

  describe(): string {
    return `clients: ${this.told("clients")}; hosts: ${this.told("hosts")}`;
  }

  close(): void {
    for (const { socket } of [...this.clients, ...this.hosts]) socket.destroy();
    this.#server.close();
  }
}

export const requestHead = (streamId: number, target: string, flags: number): Buffer =>
  frame(
    frameTypes.headers,
    flags,
    streamId,
    plainFields([
      [":method", "POST"],
      [":scheme", "http"],
      [":authority", "a"],
      [":path", target],
    ]),
  );

export const head = (streamId: number, isEnd = true, more: readonly (readonly [string, string])[] = []): Buffer =>
  frame(frameTypes.headers, endHeaders | (isEnd ? endStream : 0), streamId, plainFields([[":status", "200"], ...more]));
export const body = (streamId: number, text: string, isEnd = false): Buffer =>
  frame(frameTypes.data, isEnd ? endStream : 0, streamId, text);
export const reset = (streamId: number, code: keyof typeof errorCodes): Buffer =>
  frame(frameTypes.rstStream, 0, streamId, uint32(errorCodes[code]));
export const goAway = (lastId: number, code: keyof typeof errorCodes = "noError"): Buffer =>
  frame(frameTypes.goAway, 0, 0, Buffer.concat([uint32(lastId), uint32(errorCodes[code])]));
export const streamsAtOnce = (count: number): Buffer => settingFrame(settingIds.maxConcurrentStreams, count);
export const answer = (host: Http2Peer, streamId: number): void => host.send(head(streamId));

function bootstrap(log: string, rows: readonly Http2Row[], ports: readonly number[]): string {
  const managerOf = ({ manager, route }: Http2Row, index: number): object => ({
    "@type": extension("filters.network.http_connection_manager.v3.HttpConnectionManager"),
    stat_prefix: `r${index}`,
    codec_type: "HTTP2",
    drain_timeout: "0.05s",
    route_config: {
      virtual_hosts: [
        {
          name: "all",
          domains: ["*"],
          routes: [{ match: { prefix: "/" }, route: { cluster: `r${index}`, timeout: "0s", ...route } }],
        },
      ],
    },
    http_filters: [router],
    access_log: [
      fileAccessLog(log, `${index}\t%REQ(:path)% %RESPONSE_CODE% %RESPONSE_FLAGS% %RESPONSE_CODE_DETAILS%\n`),
    ],
    ...manager,
  });
  const clusterOf = ({ cluster, common, http2 }: Http2Row, index: number): object => {
    const options = {
      "@type": extension("upstreams.http.v3.HttpProtocolOptions"),
      ...(common !== undefined && { common_http_protocol_options: common }),
      explicit_http_config: { http2_protocol_options: http2 ?? {} },
    };
    const name = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions";
    return staticCluster(`r${index}`, [ports[index]!], {
      ...cluster,
      typed_extension_protocol_options: { [name]: options },
    });
  };
  return JSON.stringify({
    admin: { address: loopback(0) },
    static_resources: {
      listeners: rows.map((row, index) => ({
        name: `r${index}`,
        address: loopback(0),
        filter_chains: [
          {
            filters: [{ name: "envoy.filters.network.http_connection_manager", typed_config: managerOf(row, index) }],
          },
        ],
      })),
      clusters: rows.map(clusterOf),
    },
  });
}

/** Lines of the access log by the number of their row. */
async function linesOf(log: string, counts: readonly number[]): Promise<ReadonlyMap<number, readonly string[]>> {
  const read = () => {
    const text = fs.existsSync(log) ? fs.readFileSync(log, "utf8") : "";
    const lines = text
      .slice(0, text.lastIndexOf("\n") + 1)
      .split("\n")
      .slice(0, -1);
    return lines.map((line) => line.split("\t") as [string, string]);
  };
  const byRow = (): Map<number, string[]> => {
    const rows = new Map<number, string[]>();
    for (const [number, line] of read()) rows.set(Number(number), [...(rows.get(Number(number)) ?? []), line]);
    return rows;
  };
  const missing = (): readonly number[] => {
    const rows = byRow();
    return counts.flatMap((count, row) => ((rows.get(row)?.length ?? 0) < count ? [row] : []));
  };
  // A line that never comes fails its own row.
  const options = { what: "the access log", details: () => `rows ${missing().join(", ")}`, intervalMs: 100 };
  await waitFor(() => missing().length === 0, options).catch(() => undefined);
  return byRow();
}

export interface Http2Parity extends AsyncDisposable {
  /** Rejects where the row did not come to its end. */
  outcome(index: number, side: "ours" | "envoys"): Promise<Http2Outcome>;
}

/** Plays all rows on the one proxy, and then on the other. */
export async function startHttp2Parity(rows: readonly Http2Row[]): Promise<Http2Parity> {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), "tulle-http2-"));
  const open = new AsyncDisposableStack();
  open.defer(() => fs.rmSync(folder, { recursive: true }));
  const outcomes = new Map<string, readonly PromiseSettledResult<Http2Outcome>[]>();
  for (const name of ["ours", "envoys"] as const) {
    const exchanges = await Promise.all(rows.map((row) => Exchange.start(row, name === "ours")));
    const ports = exchanges.map(({ hostPort }) => hostPort);
    const make = (log: string): string => bootstrap(log, rows, ports);
    const side = await (name === "ours"
      ? startOurs(path.join(folder, "ours.log"), make)
      : startEnvoy(folder, rows.length, make));
    open.defer(() => side.stop());
    for (const exchange of exchanges) open.defer(() => exchange.close());
    outcomes.set(name, await playAll(rows, exchanges, side));
  }
  return {
    async outcome(index, side) {
      const result = outcomes.get(side)![index]!;
      if (result.status === "rejected") throw result.reason;
      return result.value;
    },
    [Symbol.asyncDispose]: () => open.disposeAsync(),
  };
}

/** So few that a busy machine does not take the time that a row's own time-out leaves. */
const rowsAtOnce = 20;

async function playAll(
  rows: readonly Http2Row[],
  exchanges: readonly Exchange[],
  side: Side,
): Promise<readonly PromiseSettledResult<Http2Outcome>[]> {
  const played: PromiseSettledResult<void>[] = [];
  while (played.length < rows.length) {
    const wave = exchanges.slice(played.length, played.length + rowsAtOnce);
    const plays = wave.map((each, index) => each.play(side.ports.get(`r${played.length + index}`)!, side.adminPort));
    played.push(...(await Promise.allSettled(plays)));
  }
  const counts = exchanges.map(({ requests }, index) => (played[index]!.status === "fulfilled" ? requests : 0));
  const lines = await linesOf(side.log, counts);
  const values = await countersOf(side, /^(http|cluster)\.r\d+\./);
  return rows.map((row, index): PromiseSettledResult<Http2Outcome> => {
    const result = played[index]!;
    if (result.status === "rejected") return result;
    const exchange = exchanges[index]!;
    const named = row.expected(exchange.isOurs)[3];
    const counters = countedNames
      .filter(([, name]) => name !== furtherName || name in named)
      .map(([scope, name]) => [name, values[`${scope}.r${index}.${name}`] ?? 0] as const)
      .filter(([, value]) => value > 0);
    const log = (lines.get(index) ?? []).toSorted().join(", ");
    const value = [exchange.told("clients"), exchange.told("hosts"), log, Object.fromEntries(counters)] as const;
    return { status: "fulfilled", value };
  });
}
