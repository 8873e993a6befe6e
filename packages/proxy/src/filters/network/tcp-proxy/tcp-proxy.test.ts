// The TCP proxy on real sockets with time driven by hand: buffers in both directions, tries, time limits, what it
// reports.
import assert from "node:assert/strict";
import type net from "node:net";
import { type TestContext, test } from "node:test";
import { Logging, MetricRegistry } from "@tulle/telemetry";
import type { Cluster } from "../../../cluster/cluster.ts";
import { detachedScope } from "../../../fields/compile-scope.ts";
import { DataPath } from "../../../worker/data-path.ts";
import type { ListenerFilter } from "../../listener/listener-filter.ts";
import type { NetworkFilter } from "../../../listener/network-filter.ts";
import { handBuiltCluster, handBuiltListener } from "../../../testing/hand-built-runtime.ts";
import { ManualClock } from "../../../testing/manual-clock.ts";
import { Client, runBackend, until } from "../../../testing/running-proxy.ts";
import { connectionFlagsText } from "../../../http/response-flags.ts";
import { ListenerHost } from "../../../listener/listener-host.ts";
import { TcpProxy } from "./tcp-proxy.ts";
import type { TcpProxySettings } from "./tcp-proxy-settings.ts";
import { makeTcpProxyStats } from "./tcp-proxy-stats.ts";

interface Proxy {
  readonly port: number;
  readonly clock: ManualClock;
  readonly host: ListenerHost;
  readonly settings: TcpProxySettings;
  /** `<flags> <bytes received>/<bytes sent> <attempts>` of each connection that has ended. */
  readonly log: string[];
  /** What filters before the TCP proxy were told. */
  readonly reports: string[];
}

interface ProxyOptions extends Partial<TcpProxySettings> {
  readonly bufferLimitBytes?: number;
  readonly filter?: Partial<NetworkFilter>;
  /** The first bytes have been looked at before. */
  readonly inspects?: boolean;
}

const looks: ListenerFilter = {
  name: "looks",
  isSkipped: () => false,
  onAccept: undefined,
  inspector: () => () => "continue",
};

async function runTcpProxy(t: TestContext, cluster: Cluster, options: ProxyOptions = {}): Promise<Proxy> {
  const clock = new ManualClock();
  const log: string[] = [];
  const reports: string[] = [];
  const slot = detachedScope().clusterSlot(cluster.name);
  slot.current = cluster;
  const { bufferLimitBytes = 1024 * 1024, filter, inspects = false, ...overrides } = options;
  const settings: TcpProxySettings = {
    statPrefix: "test",
    chooseCluster: () => slot,
    idleTimeoutMs: 3_600_000,
    maxDurationMs: 0,
    maxDurationJitterPercent: 0,
    maxConnectAttempts: 1,
    accessLogs: [
      {
        log: ({ responseFlags, bytesReceived, bytesSent, attemptCount }) =>
          void log.push(`${connectionFlagsText(responseFlags)} ${bytesReceived}/${bytesSent} ${attemptCount}`),
      },
    ],
    logFlush: { intervalMs: 0, onStart: false, onConnected: false },
    stats: makeTcpProxyStats(new MetricRegistry(), "test"),
    ...overrides,
  };
  const dataPath = new DataPath({ logging: new Logging({ level: "off" }), clock, random: () => 0.5 });
  const host = new ListenerHost({ dataPath, inheritedDescriptors: new Map() });
  const listener = handBuiltListener(new TcpProxy(settings));
  const [chain] = listener.filterChains;
  const networkFilter: NetworkFilter = {
    name: "test",
    onNewConnection: () => "continue",
    onTcpSession: (_info, phase) => void reports.push(phase),
    ...filter,
  };
  const only = { ...chain!, networkFilters: [networkFilter] };
  const fault = await host.apply({
    ...listener,
    listenerFilters: inspects ? [looks] : [],
    filterChains: [only],
    findChain: () => only,
    perConnectionBufferLimitBytes: bufferLimitBytes,
  });
  if (fault !== undefined) throw new Error(fault);
  t.after(() => host.stop());
  return { port: host.boundAddresses().get("hand-built")![0]!.port, clock, host, settings, log, reports };
}

const ended = (proxy: Proxy): Promise<void> =>
  until(
    () => proxy.log.length === 1,
    () => "the end of the connection",
  );

test("a host that does not read stops the client, and goes on when it does", async (t) => {
  const sockets: net.Socket[] = [];
  const backend = await runBackend(t, (socket, _data, turn) => {
    if (turn === 0) sockets.push(socket.pause());
  });
  const cluster = handBuiltCluster("c", [backend.port], { perConnectionBufferLimitBytes: 16_384 });
  const proxy = await runTcpProxy(t, cluster, { bufferLimitBytes: 16_384 });
  const client = await Client.connect(t, proxy.port);
  client.send("first");
  await until(
    () => sockets.length === 1,
    () => "the host's first bytes",
  );
  const total = 24 * 1024 * 1024;
  client.send("x".repeat(total));
  client.socket.end();
  await until(
    () => proxy.settings.stats.pausedReading.value > 0,
    () => "the proxy to stop reading",
  );
  assert.ok(proxy.settings.stats.bytesReceived.value < total);
  sockets[0]!.resume();
  await until(
    () => backend.seen.includes("<FIN>"),
    () => "the end at the host",
  );
  assert.equal(proxy.settings.stats.bytesReceived.value, total + 5);
  assert.ok(proxy.settings.stats.resumedReading.value > 0);
});

test("a client that does not read stops the host", async (t) => {
  const total = 24 * 1024 * 1024;
  const backend = await runBackend(t, (socket) => void socket.write("y".repeat(total)));
  const cluster = handBuiltCluster("c", [backend.port], { perConnectionBufferLimitBytes: 16_384 });
  const proxy = await runTcpProxy(t, cluster, { bufferLimitBytes: 16_384 });
  const client = await Client.connect(t, proxy.port);
  client.socket.pause();
  client.send("x");
  // Reads stand still once the buffers of both kernels are full.
  let before = -1;
  await until(
    () => {
      const { value } = proxy.settings.stats.bytesSent;
      const stands = value > 0 && value === before && backend.sockets[0]!.writableLength > 0;
      before = value;
      return stands;
    },
    () => "the host to be stopped",
  );
  assert.ok(proxy.settings.stats.bytesSent.value < total);
  client.socket.resume();
  await until(
    () => client.received.length === total,
    () => "all of it",
  );
});

test("a try at a host that is not there is followed by one at another", async (t) => {
  const backend = await runBackend(t, (socket) => void socket.end("hello"));
  const cluster = handBuiltCluster("c", [1, backend.port]);
  const proxy = await runTcpProxy(t, cluster, { maxConnectAttempts: 2 });
  const client = await Client.connect(t, proxy.port);
  client.send("x");
  assert.equal(await client.receiveEnd(), "hello");
  client.socket.end();
  await ended(proxy);
  assert.deepEqual(proxy.log, ["UF 1/5 2"]);
  assert.equal(cluster.stats.upstreamConnectFailures.value, 1);
  assert.equal(cluster.stats.upstreamConnectionsActive.value, 0);
});

test("a connection that does not come about in time", async (t) => {
  // Documentation addresses lead nowhere (RFC 5737); where the machine refuses them at once, the flags are the same.
  const cluster = handBuiltCluster("c", [80], { connectTimeoutMs: 1000 });
  Object.assign(cluster.hosts[0]!, { address: { type: "ip", ip: "192.0.2.77", port: 80 } });
  const proxy = await runTcpProxy(t, cluster);
  await Client.connect(t, proxy.port);
  await until(
    () => {
      proxy.clock.advance(100);
      return proxy.log.length === 1;
    },
    () => "the time-out",
  );
  assert.deepEqual(proxy.log, ["UF,URX 0/0 1"]);
  assert.equal(cluster.stats.upstreamConnectAttemptsExceeded.value, 1);
  assert.deepEqual(proxy.reports, ["opened", "closed"]);
});

test("idleness counts from the last byte in either direction", async (t) => {
  const backend = await runBackend(t, (socket, data) => void socket.write(data));
  const proxy = await runTcpProxy(t, handBuiltCluster("c", [backend.port]), { idleTimeoutMs: 1000 });
  const client = await Client.connect(t, proxy.port);
  for (let count = 0; count < 3; count += 1) {
    client.send("x");
    await client.receive(/x/);
    proxy.clock.advance(900);
  }
  assert.deepEqual(proxy.log, []);
  proxy.clock.advance(200);
  await ended(proxy);
  assert.deepEqual(proxy.log, ["- 3/3 1"]);
  assert.equal(proxy.settings.stats.idleTimeouts.value, 1);
});

test("the longest time has a part that is left to chance", async (t) => {
  const backend = await runBackend(t, (socket, data) => void socket.write(data));
  const cluster = handBuiltCluster("c", [backend.port]);
  const proxy = await runTcpProxy(t, cluster, { maxDurationMs: 1000, maxDurationJitterPercent: 50 });
  const client = await Client.connect(t, proxy.port);
  client.send("x");
  await client.receive(/x/);
  proxy.clock.advance(1200);
  assert.deepEqual(proxy.log, []);
  proxy.clock.advance(100);
  await ended(proxy);
  assert.deepEqual(proxy.log, ["DT 1/1 1"]);
});

test("a long connection is told of while it lasts, and outlives the draining of its listener", async (t) => {
  const backend = await runBackend(t, (socket, data) => void socket.write(data));
  const proxy = await runTcpProxy(t, handBuiltCluster("c", [backend.port]));
  const client = await Client.connect(t, proxy.port);
  client.send("x");
  await client.receive(/x/);
  proxy.clock.advance(5010);
  assert.deepEqual(proxy.reports, ["opened", "continues"]);
  const drained = proxy.host.drain({ leastMs: 0, mostMs: 60_000 });
  client.send("y");
  await client.receive(/y/);
  proxy.clock.advance(60_010);
  await drained;
  await ended(proxy);
  assert.equal(proxy.reports.at(-1), "closed");
});

test("a connection that a filter closes is logged, and no host hears of it", async (t) => {
  const backend = await runBackend(t, () => undefined);
  const cluster = handBuiltCluster("c", [backend.port]);
  const proxy = await runTcpProxy(t, cluster, { filter: { onNewConnection: () => "close" } });
  const client = await Client.connect(t, proxy.port);
  await client.receiveEnd();
  assert.deepEqual(proxy.log, ["- 0/0 0"]);
  assert.deepEqual(proxy.reports, ["opened", "closed"]);
  assert.equal(cluster.stats.upstreamConnectionsTotal.value, 0);
  assert.equal(proxy.settings.stats.connectionsTotal.value, 1);
});

test("what was looked at goes to the host that is found in the end", async (t) => {
  const backend = await runBackend(t, (socket, data) => void socket.write(data));
  const proxy = await runTcpProxy(t, handBuiltCluster("c", [1, backend.port]), {
    inspects: true,
    maxConnectAttempts: 2,
  });
  const client = await Client.connect(t, proxy.port);
  client.send("hello");
  client.socket.end();
  assert.equal(await client.receive(/hello/), "hello");
  await client.receiveEnd();
  await ended(proxy);
  assert.deepEqual(proxy.log, ["UF 5/5 2"]);
});
