// The pool of a host: which connection a request gets, when connections end, what circuit breakers say.
import assert from "node:assert/strict";
import type net from "node:net";
import { test } from "node:test";
import { Logging } from "@tulle/telemetry";
import { DataPath } from "../worker/data-path.ts";
import { forwardTo, handBuiltCluster } from "../testing/hand-built-runtime.ts";
import { noRequest } from "../http/message.ts";
import { ManualClock } from "../testing/manual-clock.ts";
import { Client, runBackend, runProxy, until } from "../testing/running-proxy.ts";
import { drainHostPool, hostPool, type PoolWaiter } from "./host-pool.ts";
import type { PooledConnection, UpstreamConnection } from "./pooled-connection.ts";

const ok = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
const get = (path: string): string => `GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`;
const breakers = {
  maxConnections: 1024,
  maxPendingRequests: 1024,
  maxRequests: 1024,
  maxRetries: 3,
  retryBudget: undefined,
};

test("one connection serves one request after the other", async (t) => {
  const backend = await runBackend(t, (socket) => void socket.write(ok));
  const cluster = handBuiltCluster("c", [backend.port]);
  const proxy = await runProxy(t, { routes: { "/": forwardTo(cluster) } });
  const client = await Client.connect(t, proxy.port);
  for (let count = 0; count < 5; count += 1) {
    client.send(get("/"));
    await client.receive(/ok$/);
  }
  assert.equal(backend.sockets.length, 1);
  assert.equal(cluster.stats.upstreamConnectionsActive.value, 1);
});

test("a connection that is on its way out is given to nobody", async (t) => {
  const backend = await runBackend(t, (socket) => void socket.write(ok));
  const cluster = handBuiltCluster("c", [backend.port]);
  const pool = hostPool(cluster.hosts[0]!, cluster, new DataPath({ logging: new Logging({ level: "off" }) }));
  t.after(() => pool.destroy());
  const ignore = (): void => undefined;
  let ready: UpstreamConnection | undefined;
  let isAnswered = false;
  const waiter: PoolWaiter = {
    onConnectionReady: (sender, connection) => {
      ready = connection;
      sender.sendRequestHead({ ...noRequest, method: "GET", path: "/" }, true);
    },
    onConnectionFailure: ignore,
    onInformational: ignore,
    onResponseHead: ignore,
    onResponseData: (_chunk, endStream) => (isAnswered = endStream),
    onResponseTrailers: ignore,
    onUpstreamReset: ignore,
    onUpstreamDrained: ignore,
  };
  pool.acquire(cluster, waiter);
  await until(
    () => isAnswered,
    () => "an answer",
  );
  const connection = ready as unknown as PooledConnection;
  assert.deepEqual([connection.capacity, connection.isIdle], [1, true]);
  // Its `close` is an event of a later turn.
  connection.destroy();
  assert.equal(connection.capacity, 0);
  ready = undefined;
  pool.acquire(cluster, waiter);
  assert.equal(ready, undefined);
});

test("max_requests_per_connection ends a connection", async (t) => {
  const backend = await runBackend(t, (socket) => void socket.write(ok));
  const cluster = handBuiltCluster("c", [backend.port], { maxRequestsPerConnection: 2 });
  const proxy = await runProxy(t, { routes: { "/": forwardTo(cluster) } });
  const client = await Client.connect(t, proxy.port);
  for (let count = 0; count < 4; count += 1) {
    client.send(get("/"));
    await client.receive(/ok$/);
  }
  assert.equal(backend.sockets.length, 2);
});

test("an idle connection is closed after its time, and one that the back end closed is not used", async (t) => {
  const clock = new ManualClock();
  const backend = await runBackend(t, (socket) => void socket.write(ok));
  const cluster = handBuiltCluster("c", [backend.port], { idleTimeoutMs: 1000 });
  const proxy = await runProxy(t, { routes: { "/": forwardTo(cluster) }, clock });
  const client = await Client.connect(t, proxy.port);
  client.send(get("/"));
  await client.receive(/ok$/);
  clock.advance(1010);
  await until(
    () => cluster.stats.upstreamConnectionsActive.value === 0,
    () => "the idle time-out",
  );
  client.send(get("/"));
  await client.receive(/ok$/);
  assert.equal(backend.sockets.length, 2);
  backend.sockets[1]!.end();
  await until(
    () => cluster.stats.upstreamConnectionsActive.value === 0,
    () => "the back end's close",
  );
  client.send(get("/"));
  await client.receive(/ok$/);
  assert.deepEqual(proxy.log, ["200 - via_upstream", "200 - via_upstream", "200 - via_upstream"]);
});

test("a connection ends with its life, and a busy one with its request", async (t) => {
  const clock = new ManualClock();
  const held: net.Socket[] = [];
  const backend = await runBackend(t, (socket) => held.push(socket));
  const cluster = handBuiltCluster("c", [backend.port], { maxConnectionDurationMs: 10_000 });
  const proxy = await runProxy(t, { routes: { "/": forwardTo(cluster) }, clock });
  const client = await Client.connect(t, proxy.port);
  const request = async (count: number): Promise<void> => {
    client.send(get("/"));
    await until(
      () => held.length === count,
      () => `request ${count} at the back end`,
    );
  };
  await request(1);
  clock.advance(10_100);
  assert.equal(cluster.stats.upstreamConnectionsActive.value, 1);
  held[0]!.write(ok);
  await client.receive(/ok$/);
  await until(
    () => cluster.stats.upstreamConnectionsActive.value === 0,
    () => "the busy connection to end with its request",
  );
  await request(2);
  held[1]!.write(ok);
  await client.receive(/ok$/);
  clock.advance(10_100);
  await until(
    () => cluster.stats.upstreamConnectionsActive.value === 0,
    () => "the idle connection to end",
  );
  assert.equal(cluster.stats.upstreamConnectionsMaxDuration.value, 2);
});

test("pending requests beyond their limit: 503 UO with x-envoy-overloaded", async (t) => {
  const held: net.Socket[] = [];
  const backend = await runBackend(t, (socket) => held.push(socket));
  const limits = { ...breakers, maxConnections: 1, maxPendingRequests: 1 };
  const cluster = handBuiltCluster("c", [backend.port], { circuitBreakers: limits });
  const proxy = await runProxy(t, { routes: { "/": forwardTo(cluster) } });
  const clients = [];
  for (let count = 0; count < 2; count += 1) {
    const client = await Client.connect(t, proxy.port);
    client.send(get("/"));
    clients.push(client);
    // The first must have its connection before the second may wait for one.
    if (count === 0)
      await until(
        () => held.length === 1,
        () => "the first request",
      );
    else
      await until(
        () => cluster.stats.upstreamRequestsPendingActive.value === 1,
        () => "the second to wait",
      );
  }
  const third = await Client.connect(t, proxy.port);
  third.send(get("/"));
  assert.match(await third.receive(/reset reason: overflow$/), /^HTTP\/1\.1 503 [^]*x-envoy-overloaded: true\r\n/);
  assert.deepEqual(proxy.log, ["503 UO upstream_reset_before_response_started{overflow}"]);
  held[0]!.write(ok);
  await clients[0]!.receive(/ok$/);
  await until(
    () => held.length === 2,
    () => "the second on the same connection",
  );
  held[1]!.write(ok);
  await clients[1]!.receive(/ok$/);
  assert.equal(backend.sockets.length, 1);
  assert.equal(cluster.stats.upstreamRequestPendingOverflow.value, 1);
  assert.equal(cluster.stats.upstreamConnectionOverflow.value, 1);
});

test("requests beyond their limit: 503 UO", async (t) => {
  const backend = await runBackend(t, () => undefined);
  const cluster = handBuiltCluster("c", [backend.port], { circuitBreakers: { ...breakers, maxRequests: 1 } });
  const proxy = await runProxy(t, { routes: { "/": forwardTo(cluster) } });
  const first = await Client.connect(t, proxy.port);
  first.send(get("/"));
  await until(
    () => backend.seen.length === 1,
    () => "the first request",
  );
  const second = await Client.connect(t, proxy.port);
  second.send(get("/"));
  await second.receive(/overflow$/);
});

test("a host that left its cluster keeps busy connections until they are done", async (t) => {
  const held: net.Socket[] = [];
  const backend = await runBackend(t, (socket) => held.push(socket));
  const cluster = handBuiltCluster("c", [backend.port]);
  const proxy = await runProxy(t, { routes: { "/": forwardTo(cluster) } });
  const client = await Client.connect(t, proxy.port);
  client.send(get("/"));
  await until(
    () => held.length === 1,
    () => "the request",
  );
  const host = cluster.hosts[0]!;
  host.active = false;
  drainHostPool(host);
  held[0]!.write(ok);
  await client.receive(/ok$/);
  await until(
    () => cluster.stats.upstreamConnectionsActive.value === 0,
    () => "the connection's end",
  );
});

test("a connection that does not come about in time: 503 UF", async (t) => {
  const clock = new ManualClock();
  // Documentation addresses lead nowhere (RFC 5737); where the machine refuses them at once, the answer is UF all the
  // same.
  const cluster = handBuiltCluster("c", [80], { connectTimeoutMs: 1000 });
  Object.assign(cluster.hosts[0]!, { address: { type: "ip", ip: "192.0.2.77", port: 80 } });
  const proxy = await runProxy(t, { routes: { "/": forwardTo(cluster) }, clock });
  const client = await Client.connect(t, proxy.port);
  client.send(get("/"));
  await until(
    () => {
      clock.advance(100);
      return proxy.log.length === 1;
    },
    () => "the time-out",
  );
  assert.match(proxy.log[0]!, /^503 UF upstream_reset_before_response_started\{/);
  assert.equal(cluster.stats.upstreamConnectFailures.value, 1);
});

for (const limit of ["maxRequests", "maxConnections"] as const) {
  test(`clusters that share a name in the statistics have each its own ${limit}`, async (t) => {
    // The first request to each host hangs, so that what is under way there stays.
    const [first, second] = [
      await runBackend(t, () => undefined),
      await runBackend(t, (socket) => void socket.write(ok)),
    ];
    const circuitBreakers = { ...breakers, [limit]: 1 };
    const busy = handBuiltCluster("a", [first.port], { circuitBreakers });
    const free = handBuiltCluster("b", [second.port], { circuitBreakers, stats: busy.stats });
    const proxy = await runProxy(t, { routes: { "/a": forwardTo(busy), "/b": forwardTo(free) } });
    const held = await Client.connect(t, proxy.port);
    held.send(get("/a"));
    await until(
      () => busy.load.requests === 1,
      () => "the request that hangs",
    );
    const client = await Client.connect(t, proxy.port);
    client.send(get("/b"));
    await client.receive(/ 200 OK[^]*ok$/);
    assert.equal(busy.stats.upstreamRequestsActive.value, 1);
    assert.equal(busy.stats.upstreamRequestActiveOverflow.value + busy.stats.upstreamConnectionOverflow.value, 0);
  });
}
