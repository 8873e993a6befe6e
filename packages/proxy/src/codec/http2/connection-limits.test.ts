// What a connection of HTTP/2 does by itself: pings, what it tells of tables, how many a host is given, and its
// statistics.
import assert from "node:assert/strict";
import { once } from "node:events";
import http from "node:http";
import http2 from "node:http2";
import net, { type AddressInfo } from "node:net";
import { test, type TestContext } from "node:test";
import { waitFor } from "../../../../../tests/tools/processes.ts";
import { forwardTo, handBuiltCluster } from "../../testing/hand-built-runtime.ts";
import { emptySettings, frame, Http2Peer, plainFields } from "../../testing/http2-peer.ts";
import { type RunningProxy, runBackend, runProxy } from "../../testing/running-proxy.ts";
import { frameFlags, frameTypes } from "./frame.ts";
import { defaultHttp2Options, type Http2Options } from "./http2-options.ts";

const { endStream, endHeaders, ack } = frameFlags;
const pings: Http2Options = {
  ...defaultHttp2Options,
  // Long enough for a client that answers, on a busy machine too.
  keepAlive: { intervalMs: 20, jitterPercent: 0, timeoutMs: 2000 },
};
const get = plainFields([
  [":method", "GET"],
  [":scheme", "http"],
  [":path", "/"],
  [":authority", "a"],
]);

async function proxyOf(t: TestContext): Promise<RunningProxy> {
  const backend = await runBackend(t, (socket) => void socket.write("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"));
  const cluster = handBuiltCluster("c", [backend.port]);
  return runProxy(t, { routes: { "/": forwardTo(cluster) }, config: { http2: pings } });
}

test("a client that answers pings is kept, one that answers none is closed", async (t) => {
  const proxy = await proxyOf(t);
  const answering = http2.connect(`http://127.0.0.1:${proxy.port}`);
  t.after(() => answering.destroy());
  let count = 0;
  answering.on("ping", () => (count += 1));
  const silent = await Http2Peer.open(proxy.port);
  await waitFor(() => silent.isClosed, { what: "the end of the silent one" });
  assert.ok(silent.frames.some(({ type }) => type === frameTypes.ping));
  await waitFor(() => count > 3, { what: "further pings" });
  assert.equal(answering.destroyed, false);
});

test("a host that answers no pings loses its connection, and requests go on another", async (t) => {
  const connections: net.Socket[] = [];
  const server = net.createServer((socket) => {
    connections.push(socket);
    socket.on("error", () => undefined);
    socket.write(emptySettings);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => {
    server.close();
    for (const socket of connections) socket.destroy();
  });
  const { port } = server.address() as AddressInfo;
  const cluster = handBuiltCluster("c", [port], { protocol: "HTTP/2", http2: pings });
  const proxy = await runProxy(t, { routes: { "/": forwardTo(cluster) } });
  const response = await fetch(`http://127.0.0.1:${proxy.port}/`);
  assert.equal(response.status, 503);
  assert.equal(cluster.http2Stats().keepAliveTimeouts.value, 1);
  assert.deepEqual(proxy.log, ["503 UC upstream_reset_before_response_started{connection_termination}"]);
});

test("of two sizes of the table in one SETTINGS the least is told too (RFC 7541 §4.2)", async (t) => {
  const proxy = await proxyOf(t);
  const sizes = Buffer.alloc(12);
  for (const [index, size] of [0, 4096].entries()) {
    sizes.writeUInt16BE(1, index * 6);
    sizes.writeUInt32BE(size, index * 6 + 2);
  }
  const peer = await Http2Peer.open(proxy.port, frame(frameTypes.settings, 0, 0, sizes));
  peer.send(frame(frameTypes.settings, ack, 0), frame(frameTypes.headers, endStream | endHeaders, 1, get));
  await peer.until(({ heads }) => heads.length === 1);
  const { payload } = peer.frames.find(({ type }) => type === frameTypes.headers)!;
  assert.deepEqual([...payload.subarray(0, 4)], [0x20, 0x3f, 0xe1, 0x1f]);
  assert.equal(peer.heads[0]!.fields.get(":status"), "200");
  peer.socket.destroy();
});

test("many requests wait for one connection, and what a host allows is kept", async (t) => {
  const server = http2.createServer({ settings: { maxConcurrentStreams: 10 } }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const sessions = new Set<http2.ServerHttp2Session>();
  let most = 0;
  let open = 0;
  server.on("session", (session) => sessions.add(session));
  server.on("stream", (stream: http2.ServerHttp2Stream) => {
    open += 1;
    most = Math.max(most, open);
    setImmediate(() => {
      open -= 1;
      stream.respond({ ":status": 200 }, { endStream: true });
    });
  });
  t.after(() => {
    server.close();
    for (const session of sessions) session.destroy();
  });
  const cluster = handBuiltCluster("c", [(server.address() as AddressInfo).port], { protocol: "HTTP/2" });
  const proxy = await runProxy(t, { routes: { "/": forwardTo(cluster) } });
  const client = http2.connect(`http://127.0.0.1:${proxy.port}`);
  t.after(() => client.destroy());
  const statuses = await Promise.all(
    Array.from({ length: 80 }, async () => {
      const [headers] = (await once(client.request({ ":path": "/" }).resume(), "response")) as [
        http2.IncomingHttpStatusHeader,
      ];
      return headers[":status"];
    }),
  );
  assert.deepEqual(new Set(statuses), new Set([200]), JSON.stringify([...new Set(proxy.log)]));
  assert.ok(sessions.size <= 8, `${sessions.size} connections for 80 requests of which a host takes ten`);
  assert.ok(most <= 10 * sessions.size, `${most} at a time`);
});

test("resets and trailers are counted, and the flood is named", async (t) => {
  const proxy = await proxyOf(t);
  const stats = proxy.config.http2Stats();
  const peer = await Http2Peer.open(proxy.port);
  peer.send(
    frame(frameTypes.headers, endHeaders, 1, get),
    frame(frameTypes.rstStream, 0, 1, Buffer.from([0, 0, 0, 8])),
    frame(frameTypes.headers, endHeaders, 3, get),
    frame(frameTypes.data, 0, 3),
    frame(frameTypes.data, 0, 3),
  );
  await waitFor(() => peer.isClosed, { what: "the end of the connection" });
  assert.match(peer.summary(), /GOAWAY enhanceYourCalm/);
  assert.deepEqual(
    [stats.resetsReceived.value, stats.inbound_empty_frames_flood.value, stats.goAwaysSent.value],
    [1, 1, 1],
  );
});

test("a client that opens no window costs little more for many streams than for one", async (t) => {
  let written = 0;
  const server = http.createServer((_request, response) => {
    const more = (): void => {
      do written += 1;
      while (!response.destroyed && response.write(Buffer.alloc(64 * 1024)));
    };
    response.on("drain", more);
    more();
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  const cluster = handBuiltCluster("c", [(server.address() as AddressInfo).port]);
  const bufferLimitBytes = 256 * 1024;
  const proxy = await runProxy(t, { routes: { "/": forwardTo(cluster) }, bufferLimitBytes });
  const noWindow = Buffer.from([0, 4, 0, 0, 0, 0]);
  const peer = await Http2Peer.open(proxy.port, frame(frameTypes.settings, 0, 0, noWindow));
  const streams = 40;
  const requests = Array.from({ length: streams }, (_, index) =>
    frame(frameTypes.headers, endStream | endHeaders, 2 * index + 1, get),
  );
  peer.send(frame(frameTypes.settings, ack, 0), ...requests);
  await peer.until(({ heads }) => heads.length === streams);
  let before = -1;
  const nobodyWrites = (): boolean => before === (before = written);
  await waitFor(nobodyWrites, { what: "all hosts to wait", intervalMs: 200 });
  peer.socket.destroy();
  await waitFor(() => proxy.infos.length === streams, { what: "the end of all streams" });
  const taken = proxy.infos.reduce((sum, { bytesSent }) => sum + bytesSent, 0);
  const readBytes = 64 * 1024;
  assert.ok(taken <= bufferLimitBytes + (streams + 1) * readBytes, `${taken} bytes were taken from the hosts`);
});
