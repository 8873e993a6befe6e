// Answers that a host sent before the request could reach it: none of them becomes the answer of the request.
import assert from "node:assert/strict";
import type net from "node:net";
import { test, type TestContext } from "node:test";
import { Worker } from "node:worker_threads";
import { forwardTo, handBuiltCluster, retryPolicy } from "../testing/hand-built-runtime.ts";
import { emptySettings, frame, plainFields, runHttp2Host } from "../testing/http2-peer.ts";
import { portCell, serverStates } from "../testing/impatient-server.ts";
import { RoundClock } from "../testing/round-clock.ts";
import { Client, runBackend, runProxy, until } from "../testing/running-proxy.ts";
import { frameFlags, frameTypes } from "../codec/http2/frame.ts";
import { retryConditions } from "../route/route-table.ts";
import { hostPool, type PoolWaiter } from "./host-pool.ts";

const ok = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
const timedOut = "HTTP/1.1 408 Request Timeout\r\nconnection: close\r\n\r\n";
const get = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
const post = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nbody";
const again = (bits: number) => ({ retryPolicy: retryPolicy(bits, 2) });
const beforeRequest = again(retryConditions["reset-before-request"]);

/** A host that takes requests, until told otherwise. */
interface KeptHost {
  readonly port: number;
  /** Of each connection, in order. */
  sockets(): readonly net.Socket[];
  requestCount(): number;
}

const http2Answer = (streamId: number): Buffer =>
  Buffer.concat([
    frame(frameTypes.headers, frameFlags.endHeaders, streamId, plainFields([[":status", "200"]])),
    frame(frameTypes.data, frameFlags.endStream, streamId, "ok"),
  ]);

const hosts = {
  "HTTP/1.1": async (t: TestContext, isLeaving: () => boolean, said = ""): Promise<KeptHost> => {
    const backend = await runBackend(t, (socket) => void (isLeaving() ? socket.end(said) : socket.write(ok)));
    return {
      port: backend.port,
      sockets: () => backend.sockets,
      requestCount: () => backend.seen.filter((text) => text.includes("HTTP")).length,
    };
  },
  "HTTP/2": async (t: TestContext, isLeaving: () => boolean): Promise<KeptHost> => {
    const { port, peers } = await runHttp2Host(t, emptySettings, (peer, streamId) => {
      if (isLeaving()) peer.socket.end();
      else peer.send(http2Answer(streamId));
    });
    return {
      port,
      sockets: () => peers.map(({ socket }) => socket),
      requestCount: () => peers.reduce((sum, { heads }) => sum + heads.length, 0),
    };
  },
} as const;

const protocols = ["HTTP/1.1", "HTTP/2"] as const;

const http1 = ["HTTP/1.1"] as const;

const unasked: readonly {
  readonly name: string;
  readonly act: (socket: net.Socket) => void;
  readonly of?: readonly (keyof typeof hosts)[];
}[] = [
  {
    name: "an answer",
    act: (socket) => void socket.write("HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nevil"),
    of: http1,
  },
  { name: "half a head", act: (socket) => void socket.write("HTTP/1.1 200 OK\r\nx-evil: 1\r\n"), of: http1 },
  { name: "408", act: (socket) => void socket.end(timedOut), of: http1 },
  { name: "bytes that are no HTTP", act: (socket) => void socket.write("evil"), of: http1 },
  { name: "the end", act: (socket) => void socket.end() },
  { name: "a reset", act: (socket) => void socket.resetAndDestroy() },
];
const requests = [
  { name: "GET without retries", request: get, options: {}, expected: "200 - via_upstream" },
  { name: "POST with retries", request: post, options: beforeRequest, expected: "200 - via_upstream" },
  // Its body is gone: only the client can send it again.
  {
    name: "POST without retries",
    request: post,
    options: {},
    expected: "503 UC upstream_reset_before_response_started{connection_termination}",
  },
];

const rows = unasked.flatMap(({ name, act, of = protocols }) =>
  of.flatMap((protocol) => requests.map(({ name: what, ...each }) => ({ name, act, protocol, what, ...each }))),
);

for (const { name, act, protocol, what, request, options, expected } of rows) {
  test(`${name} that comes before ${what} has left is nobody's answer: ${protocol}`, async (t) => {
    const clock = new RoundClock();
    const host = await hosts[protocol](t, () => false);
    const cluster = handBuiltCluster("c", [host.port], { protocol });
    const proxy = await runProxy(t, { routes: { "/": forwardTo(cluster, options) }, clock });
    const client = await Client.connect(t, proxy.port);
    const answered = async (pattern: RegExp): Promise<void> => {
      await until(
        () => {
          clock.endRound();
          clock.advance(1);
          return pattern.test(client.received);
        },
        () => `${String(pattern)} in ${client.received}`,
      );
      client.received = "";
    };
    client.send(get);
    await answered(/ok/);
    // Some turns look for no others before one waits for the end of its round.
    for (;;) {
      clock.endRound();
      const seen = host.requestCount();
      client.send(request);
      await until(
        () => clock.isAwaited || host.requestCount() > seen,
        () => "the request",
      );
      if (host.requestCount() === seen) break;
      await answered(/ok/);
    }
    const { length } = proxy.log;
    const seen = host.requestCount();
    act(host.sockets()[0]!);
    await until(
      () => cluster.stats.upstreamConnectionsTotal.value === 2 || proxy.log.length > length,
      () => "something to come of it",
    );
    await answered(expected.startsWith("200") ? /ok/ : /503 Service Unavailable[^]*connection termination$/);
    assert.deepEqual(proxy.log.slice(length), [expected]);
    const isSent = expected.startsWith("200") ? 1 : 0;
    assert.equal(host.requestCount(), seen + isSent);
    assert.equal(host.sockets().length, 1 + isSent);
  });
}

test("a host that ends every connection before its request costs one more try, not all of them", async (t) => {
  const clock = new RoundClock();
  const backend = await runBackend(t, () => undefined);
  const cluster = handBuiltCluster("c", [backend.port]);
  const proxy = await runProxy(t, { routes: { "/": forwardTo(cluster) }, clock });
  const client = await Client.connect(t, proxy.port);
  client.send(get);
  for (const index of [0, 1]) {
    await until(
      () => clock.isAwaited && cluster.stats.upstreamRequestsTotal.value === index + 1,
      () => `connection ${index}`,
    );
    await until(
      () => backend.sockets.length === index + 1,
      () => `connection ${index} at the back end`,
    );
    backend.sockets[index]!.write(ok);
  }
  await until(
    () => cluster.stats.upstreamConnectionsActive.value === 0,
    () => "the end of the second connection",
  );
  await until(
    () => {
      clock.endRound();
      return client.received.includes("503 Service Unavailable");
    },
    () => `503 in ${client.received}`,
  );
  assert.deepEqual(proxy.log, ["503 UC upstream_reset_before_response_started{connection_termination}"]);
});

const ignore = (): void => undefined;
const nobody: PoolWaiter = {
  onConnectionReady: ignore,
  onConnectionFailure: ignore,
  onInformational: ignore,
  onResponseHead: ignore,
  onResponseData: ignore,
  onResponseTrailers: ignore,
  onUpstreamReset: ignore,
  onUpstreamDrained: ignore,
};

async function impatientServer(t: TestContext): Promise<{ readonly port: number; readonly state: Int32Array }> {
  const state = new Int32Array(new SharedArrayBuffer(8));
  const worker = new Worker(new URL("../testing/impatient-server.ts", import.meta.url), { workerData: state });
  t.after(() => {
    Atomics.store(state, 0, serverStates.released);
    Atomics.notify(state, 0);
    return worker.terminate();
  });
  await until(
    () => Atomics.load(state, portCell) !== 0,
    () => "the server",
  );
  return { port: Atomics.load(state, portCell), state };
}

const crossings = [
  { name: "GET, reset-before-request", request: get, options: beforeRequest, expected: 200 },
  {
    name: "GET, refused-stream",
    request: get,
    options: again(retryConditions["refused-stream"]),
    expected: 200,
  },
  { name: "GET without retries", request: get, options: {}, expected: 408 },
  { name: "POST, reset-before-request", request: post, options: beforeRequest, expected: 408 },
];

for (const { name, request, options, expected } of crossings) {
  test(`a 408 that crosses with the first request of a connection: ${name}`, async (t) => {
    const { port, state } = await impatientServer(t);
    const cluster = handBuiltCluster("c", [port]);
    const proxy = await runProxy(t, { routes: { "/": forwardTo(cluster, options) } });
    const pool = hostPool(cluster.hosts[0]!, cluster, proxy.dataPath);
    assert.equal(pool.acquire(cluster, nobody), undefined);
    pool.cancel(nobody);
    const client = await Client.connect(t, proxy.port);
    await until(
      () => Atomics.load(state, 0) === serverStates.accepted && cluster.stats.upstreamConnectionsActive.value === 1,
      () => "a connection that nobody uses",
    );
    client.send(request);
    await until(
      () => cluster.stats.upstreamRequestsTotal.value === 1,
      () => "the request",
    );
    // It has left when the round is over.
    await new Promise((resolve) => setImmediate(resolve));
    Atomics.store(state, 0, serverStates.released);
    Atomics.notify(state, 0);
    await until(
      () => proxy.log.length === 1,
      () => "the end of the request",
    );
    // Its connection may be reset behind it, since the server has not read the request.
    assert.equal(proxy.infos[0]!.responseCode, expected);
  });
}

const refusedStream = again(retryConditions["refused-stream"]);
const lateUpload = post.slice(0, -1);
const ends: readonly {
  readonly name: string;
  readonly request: string;
  readonly options: object;
  readonly isNew?: boolean;
  readonly said?: string;
  readonly expected: string;
}[] = [
  { name: "GET, reset-before-request", request: get, options: beforeRequest, expected: "200" },
  { name: "GET, refused-stream", request: get, options: refusedStream, expected: "200" },
  { name: "GET without retries", request: get, options: {}, expected: "503" },
  { name: "POST", request: post, options: beforeRequest, expected: "503" },
  {
    name: "PUT that is not complete",
    request: lateUpload.replace("POST", "PUT"),
    options: beforeRequest,
    expected: "503",
  },
  { name: "GET on a new connection", request: get, options: beforeRequest, isNew: true, expected: "503" },
  {
    name: "GET behind half an answer",
    request: get,
    options: beforeRequest,
    said: "HTTP/1.1 200 OK\r\n",
    expected: "502",
  },
  {
    name: "GET behind an informational answer",
    request: get,
    options: beforeRequest,
    said: "HTTP/1.1 103 Early Hints\r\n\r\n",
    expected: "503",
  },
];

const endings = ends.flatMap((each) =>
  (each.said === undefined ? protocols : http1).map((protocol) => ({ protocol, ...each })),
);

for (const { protocol, name, request, options, isNew = false, said = "", expected } of endings) {
  test(`the end of a kept connection that crosses with its request: ${protocol}, ${name}`, async (t) => {
    let isOver = isNew;
    const host = await hosts[protocol](
      t,
      () => {
        const isLast = isOver;
        isOver = false;
        return isLast;
      },
      said,
    );
    const cluster = handBuiltCluster("c", [host.port], { protocol });
    const proxy = await runProxy(t, { routes: { "/": forwardTo(cluster, options) } });
    const client = await Client.connect(t, proxy.port);
    if (!isNew) {
      client.send(get);
      await client.receive(/ok/);
      isOver = true;
    }
    client.send(request);
    await until(
      () => proxy.log.length === (isNew ? 1 : 2),
      () => "the end of the request",
    );
    assert.match(proxy.log.at(-1)!, new RegExp(`^${expected} `));
  });
}

const closing = "HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 2\r\n\r\nno";
const meant = [
  { name: "on a connection made for the request", first: "", answer: closing, tries: 1 },
  { name: "and keeps the connection", first: get, answer: closing.replace("connection: close\r\n", ""), tries: 1 },
  {
    name: "behind an informational answer",
    first: get,
    answer: `HTTP/1.1 103 Early Hints\r\n\r\n${closing}`,
    tries: 1,
  },
  { name: "in the middle of a request", first: get, answer: closing, tries: 1, request: post.slice(0, -1) },
  { name: "again on the next connection", first: get, answer: closing, tries: 2 },
];

for (const { name, first, answer, tries, request = get } of meant) {
  test(`an application that says 408 ${name} has meant it`, async (t) => {
    let isWarm = first === "";
    const backend = await runBackend(t, (socket) => void socket.write(isWarm ? answer : ok));
    const cluster = handBuiltCluster("c", [backend.port]);
    const proxy = await runProxy(t, { routes: { "/": forwardTo(cluster, beforeRequest) } });
    const client = await Client.connect(t, proxy.port);
    if (first !== "") {
      client.send(first);
      await client.receive(/ok$/);
    }
    isWarm = true;
    const before = backend.seen.filter((text) => text.includes("HTTP")).length;
    client.send(request);
    assert.match(await client.receive(/no$/), /408 Request Timeout/);
    assert.equal(backend.seen.filter((text) => text.includes("HTTP")).length - before, tries);
  });
}
