// Random exchanges between Node's client and Node's host of HTTP/2 (both nghttp2), through our two codecs between them,
// with settings drawn at random: each end says what differs from what the other one sent.
import assert from "node:assert/strict";
import { once } from "node:events";
import http2 from "node:http2";
import type { AddressInfo } from "node:net";
import type { TestContext } from "node:test";
import { inTime } from "../../../../tests/tools/processes.ts";
import type { Cluster } from "../cluster/cluster.ts";
import { defaultHttp2Options } from "../codec/http2/http2-options.ts";
import { forwardTo, handBuiltCluster } from "./hand-built-runtime.ts";
import { type Exchange, type Field, type Message, randomExchange } from "./random-exchanges.ts";
import { seededRandom } from "./random-requests.ts";
import { type RunningProxy, runProxy, type Scope } from "./running-proxy.ts";

const exchangesPerRound = 500;
const atOnce = 50;
const longestDescription = 2000;
/** By which the host finds what is asked of it. */
const idField = "x-exchange";
/** What proxies say themselves. */
const proxyFields = new Set(
  "x-request-id x-forwarded-for x-forwarded-proto x-envoy-external-address server date x-envoy-upstream-service-time".split(
    " ",
  ),
);

/** What an end has seen of a message, or how it ended. */
interface Seen {
  fields: Field[];
  bytes: Buffer[];
  trailers: Field[];
  resetCode: number;
}

interface Running extends Exchange {
  readonly atHost: Promise<Seen>;
  readonly settleHost: (seen: Seen) => void;
}

export interface ExchangeRun {
  readonly count: number;
  readonly longestMs: number;
}

/** Runs rounds until there are enough or the time is over; tells the seed, and how many there were. */
export async function runExchanges(t: TestContext, { count, longestMs }: ExchangeRun): Promise<number> {
  const seed = Number(process.env["TULLE_FUZZ_SEED"] ?? Date.now() % 1_000_000_007);
  t.diagnostic(`seed ${seed}`);
  const endMs = performance.now() + longestMs;
  let done = 0;
  for (let round = 0; done < count && performance.now() < endMs; round += 1) {
    // No test of its own: a test keeps what its hooks refer to until the last one has ended.
    await using open = new AsyncDisposableStack();
    const scope: Scope = { after: (end) => open.defer(async () => void (await end())) };
    try {
      await runRound(scope, seededRandom(seed + round));
    } catch (error) {
      throw new Error(`TULLE_FUZZ_SEED=${seed + round}: ${(error as Error).message}`, { cause: error });
    }
    done += exchangesPerRound;
  }
  t.diagnostic(`${done} exchanges`);
  return done;
}

async function runRound(scope: Scope, random: () => number): Promise<void> {
  const anyOf = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)]!;
  const settings = (): http2.Settings => ({
    initialWindowSize: anyOf([1000, 20_000, 65_535, 1_000_000]),
    headerTableSize: anyOf([0, 100, 4096, 65_536]),
    maxFrameSize: anyOf([16_384, 100_000]),
    maxConcurrentStreams: anyOf([100, 1000]),
  });
  const options = (): http2.ServerOptions => ({ settings: settings(), paddingStrategy: anyOf([0, 1, 2]) });
  const codec = () => ({
    ...defaultHttp2Options,
    headerTableBytes: anyOf([0, 100, 4096, 65_536]),
    initialStreamWindowBytes: anyOf([65_535, 262_140]),
    initialConnectionWindowBytes: anyOf([65_535, 1_048_560]),
  });
  const running = new Map<string, Running>();
  const port = await startHost(scope, options(), running);
  const cluster = handBuiltCluster("c", [port], { protocol: "HTTP/2", http2: codec(), enableTrailers: true });
  const proxy = await runProxy(scope, {
    routes: { "/": forwardTo(cluster) },
    config: { http2: codec(), enableTrailers: true },
    bufferLimitBytes: anyOf([1000, 1024 * 1024]),
  });
  const session = http2.connect(`http://127.0.0.1:${proxy.port}`, options() as http2.ClientSessionOptions);
  scope.after(() => session.destroy());
  // What goes wrong first ends the round: what is under way may never come to its end.
  const { promise: failed, reject: fail } = Promise.withResolvers<never>();
  const onEnd = (what: string): void => fail(new Error(`${what}; ${floods(proxy, cluster)}`));
  session.on("error", (error) => onEnd(error.message));
  session.on("goaway", (code) => onEnd(`GOAWAY ${code}`));
  let next = 0;
  const work = async (): Promise<void> => {
    while (next < exchangesPerRound) {
      const id = String(next++);
      const { promise: atHost, resolve: settleHost } = Promise.withResolvers<Seen>();
      const exchange = { ...randomExchange(random), atHost, settleHost };
      running.set(id, exchange);
      const fault = await inTime(exchangeFault(session, id, exchange), `the end of ${described(exchange)}`);
      running.delete(id);
      if (fault !== undefined)
        throw new Error(`exchange ${id}: ${fault}; ${floods(proxy, cluster)}: ${described(exchange)}`);
    }
  };
  await Promise.race([failed, Promise.all(Array.from({ length: atOnce }, work))]);
  assert.equal(proxy.config.stats.downstreamProtocolErrors.value, 0);
}

/** Counters of both codecs that have moved. */
const floods = (proxy: RunningProxy, cluster: Cluster): string =>
  JSON.stringify(
    [proxy.config.http2Stats(), cluster.http2Stats()].map((stats) =>
      Object.fromEntries(Object.entries(stats).flatMap(([name, { value }]) => (value > 0 ? [[name, value]] : []))),
    ),
  );

const described = ({ request, response, ...rest }: Exchange): string => {
  const sizes = ({ fields, pieces, trailers }: Message) => ({ fields, pieces: pieces.map((p) => p.length), trailers });
  return JSON.stringify({ ...rest, request: sizes(request), response: sizes(response) }).slice(0, longestDescription);
};

const objectOf = (fields: readonly Field[]): http2.OutgoingHttpHeaders =>
  Object.fromEntries(
    [...Map.groupBy(fields, ([name]) => name)].map(([name, all]) => [name, all.map(([, value]) => value)]),
  );

/** `raw` is a list of names and values in turn. */
const fieldsOf = (raw: readonly string[]): Field[] =>
  Array.from({ length: raw.length / 2 }, (_, at) => [raw[2 * at]!, raw[2 * at + 1]!]);

function watch(stream: http2.Http2Stream, seen: Seen): Promise<Seen> {
  stream.on("data", (bytes: Buffer) => void seen.bytes.push(bytes));
  stream.on("trailers", (_all: unknown, _flags: number, raw: string[]) => void seen.trailers.push(...fieldsOf(raw)));
  stream.on("error", () => undefined);
  const { promise, resolve } = Promise.withResolvers<Seen>();
  stream.on("close", () => {
    seen.resetCode = stream.rstCode;
    resolve(seen);
  });
  return promise;
}

function sendBody(stream: http2.Http2Stream, { pieces, trailers }: Message): void {
  stream.on("wantTrailers", () => (stream as http2.ServerHttp2Stream).sendTrailers(objectOf(trailers)));
  for (const piece of pieces) stream.write(piece);
  stream.end();
}

async function startHost(
  scope: Scope,
  options: http2.ServerOptions,
  running: ReadonlyMap<string, Running>,
): Promise<number> {
  const server = http2.createServer(options).listen(0, "127.0.0.1");
  const sessions = new Set<http2.Http2Session>();
  server.on("session", (session) => void sessions.add(session));
  scope.after(() => {
    server.close();
    for (const session of sessions) session.destroy();
  });
  server.on("stream", (stream: http2.ServerHttp2Stream, headers, _flags, raw) => {
    const exchange = running.get(String(headers[idField]));
    if (exchange === undefined) return stream.close(http2.constants.NGHTTP2_INTERNAL_ERROR);
    void watch(stream, { fields: fieldsOf(raw), bytes: [], trailers: [], resetCode: 0 }).then(exchange.settleHost);
    const { informational, response, reset, status } = exchange;
    if (informational.length > 0) stream.additionalHeaders({ ":status": 103, ...objectOf(informational) });
    if (reset?.by === "host before its head") return stream.close(reset.code);
    const answer = (): void => {
      if (stream.destroyed) return;
      stream.respond(
        { ":status": status, ...objectOf(response.fields) },
        { waitForTrailers: response.trailers.length > 0 },
      );
      if (reset?.by === "host") return stream.close(reset.code);
      // The client gives up before it has all.
      if (reset === undefined) sendBody(stream, response);
    };
    if (reset === undefined) stream.on("end", answer);
    else answer();
  });
  await once(server, "listening");
  return (server.address() as AddressInfo).port;
}

/** What one end has not seen as the other one sent it. */
async function exchangeFault(
  session: http2.ClientHttp2Session,
  id: string,
  exchange: Running,
): Promise<string | undefined> {
  const { method, path, authority, request, response, informational, status, reset } = exchange;
  const own = { ":method": method, ":path": path, ":authority": authority, [idField]: id };
  const stream = session.request(
    { ...own, ...objectOf(request.fields) },
    {
      endStream: request.pieces.length === 0 && request.trailers.length === 0,
      waitForTrailers: request.trailers.length > 0,
    },
  );
  const seen: Seen = { fields: [], bytes: [], trailers: [], resetCode: 0 };
  const early: Field[] = [];
  stream.on("headers", (_all: unknown, _flags: number, raw: string[]) => void early.push(...fieldsOf(raw)));
  stream.on("response", (_all: unknown, _flags: number, raw: string[]) => {
    seen.fields.push(...fieldsOf(raw));
    if (reset?.by === "client") stream.close(reset.code);
  });
  const ended = watch(stream, seen);
  if (!stream.writableEnded) sendBody(stream, request);
  await ended;
  const host = await exchange.atHost;
  return (
    headFault(
      "request",
      [[":method", method], [":path", path], [":authority", authority], ...request.fields],
      host.fields,
    ) ??
    (reset === undefined
      ? (headFault("interim answer", informational, early) ??
        messageFault("request", request, host) ??
        answerFault(status, response, seen))
      : resetFault(reset, seen, host))
  );
}

function answerFault(status: number, response: Message, seen: Seen): string | undefined {
  const fields: Field[] = [[":status", String(status)], ...response.fields];
  return headFault("answer", fields, seen.fields) ?? messageFault("answer", response, seen);
}

/** Values of one name keep their order; names need not. */
function headFault(what: string, sent: readonly Field[], got: readonly Field[]): string | undefined {
  const values = (fields: readonly Field[]): ReadonlyMap<string, readonly string[]> =>
    new Map([...Map.groupBy(fields, ([name]) => name)].map(([name, all]) => [name, all.map(([, value]) => value)]));
  const wanted = values(sent);
  const found = values(got);
  for (const [name, list] of wanted) {
    const others = found.get(name) ?? [];
    if (JSON.stringify(list) !== JSON.stringify(others)) return `${what}: ${name} came as ${JSON.stringify(others)}`;
  }
  const further = [...found.keys()].filter((name) => !wanted.has(name) && !mayBeAdded(name));
  return further.length > 0 ? `${what}: ${further.join(", ")} came from nowhere` : undefined;
}

const mayBeAdded = (name: string): boolean =>
  name.startsWith(":") || name === idField || name === "content-length" || proxyFields.has(name);

function messageFault(what: string, sent: Message, got: Seen): string | undefined {
  if (got.resetCode !== 0) return `${what}: reset with ${got.resetCode}`;
  const [body, other] = [Buffer.concat(sent.pieces), Buffer.concat(got.bytes)];
  if (!body.equals(other)) return `${what}: ${other.length} bytes, or others, in the place of ${body.length}`;
  return headFault(`${what}'s trailers`, sent.trailers, got.trailers);
}

function resetFault({ by, code }: NonNullable<Exchange["reset"]>, seen: Seen, host: Seen): string | undefined {
  const { NGHTTP2_CANCEL, NGHTTP2_PROTOCOL_ERROR, NGHTTP2_INTERNAL_ERROR } = http2.constants;
  if (by === "client") return host.resetCode === NGHTTP2_CANCEL ? undefined : `the host is told ${host.resetCode}`;
  if (by === "host") {
    const told = code === NGHTTP2_PROTOCOL_ERROR ? NGHTTP2_PROTOCOL_ERROR : NGHTTP2_INTERNAL_ERROR;
    // Node's host may end its answer before it resets the stream.
    return seen.resetCode === told || seen.resetCode === 0 ? undefined : `the client is told ${seen.resetCode}`;
  }
  const status = new Map(seen.fields).get(":status");
  const wanted = code === NGHTTP2_PROTOCOL_ERROR ? "502" : "503";
  return status === wanted ? undefined : `the client is answered ${status}`;
}
