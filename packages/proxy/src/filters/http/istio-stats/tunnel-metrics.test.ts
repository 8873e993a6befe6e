// Tunnels are counted as connections: while they are open, at their end, and those that never opened; any other request
// is a request.
import assert from "node:assert/strict";
import { test } from "node:test";
import { MetricRegistry } from "@tulle/telemetry";
import { requestHead, streamInfo } from "../../../testing/from-configuration.ts";
import type { HttpStream } from "../../../http/filter.ts";
import type { RequestHead } from "../../../http/message.ts";
import { clock, cluster, dataPath, filter, series } from "../../../testing/istio-stats-probe.ts";

const echo = cluster("echo", {});

function begin(metrics: MetricRegistry, head: Partial<RequestHead>, terminatesConnect = true) {
  const hooks = filter(metrics, false);
  const request = { ...requestHead(), ...head };
  const info = streamInfo(request);
  info.cluster = echo;
  [info.upstreamHost] = echo.hosts;
  const upgrades = new Map([["connect", { enabled: true, terminatesConnect }]]);
  const routeMatch = { action: { type: "forward", upgrades } };
  const stream = { info, request, routeMatch, dataPath } as unknown as HttpStream;
  hooks.onRequestHead?.(stream, false);
  return { info, end: () => hooks.onComplete?.(stream) };
}

const tunnel = { method: "CONNECT", upgrade: "connect" };
const told = (metrics: MetricRegistry): readonly (number | undefined)[] =>
  ["connections_opened", "connections_closed", "sent_bytes", "received_bytes"].map((name) => {
    const [found] = series(metrics, `istio_tcp_${name}_total`);
    return found && "value" in found.metric ? Number(found.metric.value) : undefined;
  });

test("a tunnel is told of every five seconds, and no byte twice", () => {
  const metrics = new MetricRegistry();
  const { info, end } = begin(metrics, tunnel);
  clock.advance(5100);
  assert.deepEqual(told(metrics), [undefined, undefined, undefined, undefined]);
  info.responseCode = 200;
  info.bytesSent = 7;
  info.bytesReceived = 3;
  clock.advance(5100);
  assert.deepEqual(told(metrics), [1, 0, 7, 3]);
  info.bytesSent = 10;
  end();
  clock.advance(20_000);
  assert.deepEqual(told(metrics), [1, 1, 10, 3]);
  assert.deepEqual(series(metrics), []);
  const { labels } = series(metrics, "istio_tcp_connections_closed_total")[0]!;
  assert.deepEqual([labels["reporter"], labels["request_protocol"]], ["source", "tcp"]);
});

test("one that could not be opened is a connection with the flags of its failure", () => {
  const metrics = new MetricRegistry();
  const { info, end } = begin(metrics, tunnel);
  info.responseCode = 503;
  info.responseFlags = 1 << 6;
  end();
  assert.deepEqual(told(metrics), [1, 1, 0, 0]);
  assert.notEqual(series(metrics, "istio_tcp_connections_closed_total")[0]!.labels["response_flags"], "-");
});

for (const { name, head, terminatesConnect } of [
  { name: "a CONNECT that is passed on", head: tunnel, terminatesConnect: false },
  { name: "a WebSocket over HTTP/2", head: { method: "CONNECT", upgrade: "websocket" }, terminatesConnect: true },
  { name: "a GET", head: {}, terminatesConnect: true },
]) {
  test(`a request: ${name}`, () => {
    const metrics = new MetricRegistry();
    begin(metrics, head, terminatesConnect).end();
    assert.equal(series(metrics).length, 1);
    assert.deepEqual(told(metrics), [undefined, undefined, undefined, undefined]);
  });
}
