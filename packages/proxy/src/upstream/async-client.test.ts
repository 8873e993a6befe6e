// Requests of the proxy's own: what is sent, what comes of every kind of answer, and that nothing is heard after a
// cancel.
import assert from "node:assert/strict";
import type net from "node:net";
import { type TestContext, test } from "node:test";
import { Logging, MetricRegistry } from "@tulle/telemetry";
import type { Cluster } from "../cluster/cluster.ts";
import { makeClusterStats } from "../cluster/cluster-stats.ts";
import { DataPath } from "../worker/data-path.ts";
import { handBuiltCluster } from "../testing/hand-built-runtime.ts";
import { ManualClock } from "../testing/manual-clock.ts";
import { runBackend, until } from "../testing/running-proxy.ts";
import { HeaderMap } from "../http/header-map.ts";
import { Slot } from "../runtime/slot.ts";
import { hostPool } from "./host-pool.ts";
import { type AsyncOptions, type AsyncRequest, type AsyncResult, sendAsyncRequest } from "./async-client.ts";

const post: AsyncRequest = {
  method: "POST",
  scheme: "http",
  authority: "issuer.test",
  path: "/token?x=1",
  headers: new HeaderMap(["content-type", "text/plain"]),
  body: Buffer.from("a=b"),
};
const options: AsyncOptions = { timeoutMs: 5000, maxResponseBytes: 10 };
const retries = { count: 2, backOffMs: 25, onServerError: true, onReset: true, onConnectFailure: true };
const answer = (status: string, body: string): string =>
  `HTTP/1.1 ${status}\r\ncontent-length: ${body.length}\r\n\r\n${body}`;

function send(t: TestContext, cluster: Cluster | undefined, given: Partial<AsyncOptions> = {}, clock?: ManualClock) {
  const slot = new Slot<Cluster>("issuer");
  slot.current = cluster;
  const dataPath = new DataPath({ logging: new Logging({ level: "off" }), random: () => 0, ...(clock && { clock }) });
  t.after(() => {
    for (const host of cluster?.hosts ?? []) hostPool(host, cluster!, dataPath).destroy();
    dataPath.timers.stop();
  });
  const results: AsyncResult[] = [];
  const call = sendAsyncRequest(slot, post, { ...options, ...given }, dataPath, (result) => results.push(result));
  return { call, results };
}

async function resultOf(results: readonly AsyncResult[]): Promise<string> {
  await until(
    () => results.length > 0,
    () => "a result",
  );
  const result = results[0]!;
  return result.ok ? `${result.response.status} ${result.response.body.toString()}` : result.failure;
}

const cases: readonly {
  readonly name: string;
  readonly act: (socket: net.Socket, data: string, turn: number) => void;
  readonly given?: Partial<AsyncOptions>;
  readonly expected: string;
  readonly requests?: number;
}[] = [
  { name: "answered", act: (socket) => void socket.write(answer("200 OK", "yes")), expected: "200 yes" },
  { name: "no body", act: (socket) => void socket.write(answer("204 No Content", "")), expected: "204 " },
  {
    name: "server error, not repeated",
    act: (socket) => void socket.write(answer("503 S", "no")),
    expected: "503 no",
    requests: 1,
  },
  {
    name: "server error, repeated",
    act: (socket, _data, turn) => void socket.write(turn === 0 ? answer("503 S", "no") : answer("200 OK", "yes")),
    given: { retries },
    expected: "200 yes",
    requests: 2,
  },
  {
    name: "server errors to the end",
    act: (socket) => void socket.write(answer("503 S", "no")),
    given: { retries },
    expected: "503 no",
    requests: 3,
  },
  { name: "cut off", act: (socket) => socket.destroy(), expected: "upstream_reset{connection_termination}" },
  {
    name: "too long",
    act: (socket) => void socket.write(answer("200 OK", "12345678901")),
    expected: "response_too_large",
  },
];
for (const { name, act, given, expected, requests } of cases) {
  test(name, async (t) => {
    const backend = await runBackend(t, act);
    const cluster = handBuiltCluster("issuer", [backend.port]);
    const { results } = send(t, cluster, given);
    assert.equal(results.length, 0);
    assert.equal(await resultOf(results), expected);
    const [sent] = backend.seen;
    assert.match(sent!, /^POST \/token\?x=1 HTTP\/1\.1\r\nhost: issuer\.test\r\n/i);
    assert.match(sent!, /content-length: 3\r\n\r\na=b$/);
    if (requests !== undefined) assert.equal(cluster.stats.upstreamRequestsTotal.value, requests);
    assert.equal(cluster.stats.upstreamRequestsActive.value, 0);
  });
}

test("counted as the mesh's own, by Envoy's names", async (t) => {
  const backend = await runBackend(t, (socket) => void socket.write(answer("200 OK", "yes")));
  const metrics = new MetricRegistry();
  const cluster = handBuiltCluster("issuer", [backend.port], { stats: makeClusterStats(metrics, "issuer") });
  await resultOf(send(t, cluster).results);
  const exposition = metrics.page(undefined).text;
  assert.match(exposition, /^envoy_cluster_internal_upstream_rq\{.*envoy_response_code="200".*\} 1$/m);
  assert.match(exposition, /^envoy_cluster_internal_upstream_rq_time_count\{.*\} 1$/m);
  assert.doesNotMatch(exposition, /envoy_cluster_external_upstream_rq/);
});

test("without a cluster, without a host, without a connection", async (t) => {
  assert.equal(await resultOf(send(t, undefined).results), "cluster_not_found");
  assert.equal(await resultOf(send(t, handBuiltCluster("issuer", [])).results), "no_healthy_upstream");
  const backend = await runBackend(t, () => undefined);
  const refused = handBuiltCluster("issuer", [1]);
  assert.match(await resultOf(send(t, refused, { retries }).results), /^upstream_reset\{remote_connection_failure/);
  assert.equal(refused.stats.upstreamConnectionsTotal.value, 3);
  assert.deepEqual(backend.seen, []);
});

test("the time-out ends it, and a cancelled one is heard of no more", async (t) => {
  const clock = new ManualClock();
  const backend = await runBackend(t, () => undefined);
  const cluster = handBuiltCluster("issuer", [backend.port]);
  const late = send(t, cluster, {}, clock);
  const cancelled = send(t, cluster, {}, clock);
  await until(
    () => backend.seen.length === 2,
    () => "both requests",
  );
  cancelled.call.cancel();
  clock.advance(5010);
  assert.equal(await resultOf(late.results), "upstream_response_timeout");
  assert.deepEqual(cancelled.results, []);
  assert.equal(cluster.stats.upstreamRequestsActive.value, 0);
});
