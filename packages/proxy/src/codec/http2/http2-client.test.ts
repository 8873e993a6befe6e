// Requests to hosts of HTTP/2 (Node's own server, which speaks it by nghttp2), from clients of either version.
import assert from "node:assert/strict";
import { once } from "node:events";
import http from "node:http";
import http2 from "node:http2";
import type { AddressInfo } from "node:net";
import { test, type TestContext } from "node:test";
import { forwardTo, handBuiltCluster } from "../../testing/hand-built-runtime.ts";
import { emptySettings, frame, Http2Peer, plainFields, runHttp2Host, settingFrame } from "../../testing/http2-peer.ts";
import { Client, type RunningProxy, runProxy, until } from "../../testing/running-proxy.ts";
import { frameFlags, frameTypes, settingIds } from "./frame.ts";
import { defaultHttp2Options } from "./http2-options.ts";

type OnStream = (stream: http2.ServerHttp2Stream, headers: http2.IncomingHttpHeaders) => void;

async function host(t: TestContext, onStream: OnStream, settings?: http2.Settings): Promise<http2.Http2Server> {
  const server = http2.createServer({ ...(settings && { settings }) }).listen(0, "127.0.0.1");
  const sessions = new Set<http2.Http2Session>();
  server.on("session", (session) => void sessions.add(session));
  server.on("stream", onStream);
  await once(server, "listening");
  t.after(() => {
    server.close();
    for (const session of sessions) session.destroy();
  });
  return server;
}

function proxyTo(t: TestContext, server: http2.Http2Server): Promise<RunningProxy> {
  const cluster = handBuiltCluster("c", [(server.address() as AddressInfo).port], { protocol: "HTTP/2" });
  return runProxy(t, { routes: { "/": forwardTo(cluster) } });
}

interface Answer {
  readonly status: number;
  readonly headers: http.IncomingHttpHeaders;
  readonly body: Buffer;
  readonly trailers: NodeJS.Dict<string>;
}

async function http1Call(port: number, path: string, body?: Buffer): Promise<Answer> {
  const request = http.request({ port, host: "127.0.0.1", path, method: body === undefined ? "GET" : "POST" });
  request.end(body);
  const [response] = (await once(request, "response")) as [http.IncomingMessage];
  const chunks: Buffer[] = [];
  for await (const chunk of response) chunks.push(chunk as Buffer);
  const { statusCode = 0, headers, trailers } = response;
  return { status: statusCode, headers, body: Buffer.concat(chunks), trailers };
}

test("HTTP/1.1 in, HTTP/2 out: bodies of many sizes, side by side, on one connection", async (t) => {
  let sessions = 0;
  const server = await host(t, (stream, headers) => {
    stream.respond({ ":status": 200, "x-path": headers[":path"], "x-scheme": headers[":scheme"] });
    stream.pipe(stream);
  });
  server.on("session", () => (sessions += 1));
  const proxy = await proxyTo(t, server);
  const sizes = [1, 100, 16_384, 16_385, 300_000, 3_000_000];
  const answers = await Promise.all(
    sizes.map((size, index) => http1Call(proxy.port, `/${index}`, Buffer.alloc(size, 97 + index))),
  );
  for (const [index, { status, headers, body }] of answers.entries()) {
    assert.equal(status, 200);
    assert.equal(headers["x-path"], `/${index}`);
    assert.equal(headers["x-scheme"], "http");
    assert.ok(body.equals(Buffer.alloc(sizes[index]!, 97 + index)), `${body.length} of ${sizes[index]}`);
  }
  await http1Call(proxy.port, "/after");
  // Those that came before the first connection was up made their own.
  assert.ok(sessions <= sizes.length, `${sessions} connections`);
});

test("HTTP/2 in and out: trailers and informational answers cross, both ways", async (t) => {
  const seen: http2.IncomingHttpHeaders[] = [];
  const server = await host(t, (stream) => {
    stream.on("trailers", (trailers: http2.IncomingHttpHeaders) => void seen.push(trailers));
    stream.additionalHeaders({ ":status": 103, link: "</style.css>" });
    stream.respond({ ":status": 200 }, { waitForTrailers: true });
    stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": "0" }));
    stream.resume().on("end", () => stream.end("text"));
  });
  const proxy = await proxyTo(t, server);
  const session = http2.connect(`http://127.0.0.1:${proxy.port}`);
  t.after(() => session.destroy());
  const stream = session.request({ ":method": "POST", ":path": "/" }, { waitForTrailers: true });
  stream.on("wantTrailers", () => stream.sendTrailers({ "x-sum": "1" }));
  const early = once(stream, "headers") as Promise<[http2.IncomingHttpHeaders]>;
  const trailers = once(stream, "trailers") as Promise<[http2.IncomingHttpHeaders]>;
  stream.end("abc");
  assert.equal((await early)[0]["link"], "</style.css>");
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(chunk as Buffer);
  assert.equal(Buffer.concat(chunks).toString(), "text");
  assert.equal((await trailers)[0]["grpc-status"], "0");
  assert.equal(seen[0]?.["x-sum"], "1");
});

test("a host that resets, and one that leaves: its other requests go on, what it has not taken is sent again", async (t) => {
  const server = await host(t, (stream, headers) => {
    stream.on("error", () => undefined);
    if (headers[":path"] === "/reset") stream.close(http2.constants.NGHTTP2_INTERNAL_ERROR);
    else if (headers[":path"] === "/leave") {
      stream.respond({ ":status": 200 });
      stream.end("last");
      stream.session!.goaway(http2.constants.NGHTTP2_NO_ERROR);
    } else {
      stream.respond({ ":status": 200 });
      stream.end("text");
    }
  });
  const proxy = await proxyTo(t, server);
  assert.equal((await http1Call(proxy.port, "/")).body.toString(), "text");
  assert.equal((await http1Call(proxy.port, "/reset")).status, 503);
  assert.equal((await http1Call(proxy.port, "/")).body.toString(), "text");
  assert.equal((await http1Call(proxy.port, "/leave")).body.toString(), "last");
  assert.equal((await http1Call(proxy.port, "/")).body.toString(), "text");
  assert.deepEqual(
    proxy.log.map((line) => line.split(" ").slice(0, 2).join(" ")),
    ["200 -", "503 UR", "200 -", "200 -", "200 -"],
  );
});

test("a host that takes two at a time gets two at a time", async (t) => {
  let now = 0;
  let most = 0;
  const server = await host(
    t,
    (stream) => {
      now += 1;
      most = Math.max(most, now);
      setImmediate(() => {
        now -= 1;
        stream.respond({ ":status": 200 });
        stream.end("text");
      });
    },
    { maxConcurrentStreams: 2 },
  );
  const proxy = await proxyTo(t, server);
  assert.equal((await http1Call(proxy.port, "/first")).status, 200);
  const answers = await Promise.all(Array.from({ length: 20 }, (_, index) => http1Call(proxy.port, `/${index}`)));
  assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([200]));
  assert.ok(most >= 2);
});

// The nonce of RFC 6455 §1.3, and its answer.
const upgrade =
  "GET / HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: websocket\r\n" +
  "sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
const accept = "sec-websocket-accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=";

for (const { name, settings, expected, seen } of [
  {
    name: "that takes them",
    settings: settingFrame(settingIds.enableConnectProtocol, 1),
    expected: new RegExp(`^HTTP/1.1 101 [^]*${accept.replaceAll("+", "\\+")}[^]*\r\n\r\nhello$`),
    seen: ["headers CONNECT", "data early"],
  },
  { name: "that does not", settings: emptySettings, expected: /^HTTP\/1.1 502 /, seen: [] },
  { name: "that goes", settings: undefined, expected: /^HTTP\/1.1 503 /, seen: [] },
] as const) {
  test(`an extended CONNECT waits for what a new host says of itself, one ${name}`, async (t) => {
    const streamId = 1;
    const answer = [
      frame(frameTypes.headers, frameFlags.endHeaders, streamId, plainFields([[":status", "200"]])),
      frame(frameTypes.data, 0, streamId, "hello"),
    ];
    const silent = Buffer.alloc(0);
    const { port, peers } = await runHttp2Host(t, silent, (peer) => peer.send(...answer), silent);
    const cluster = handBuiltCluster("c", [port], { protocol: "HTTP/2" });
    const config = { upgradeTypes: new Set(["websocket"]) };
    const proxy = await runProxy(t, { routes: { "/": forwardTo(cluster) }, config });
    const client = await Client.connect(t, proxy.port);
    client.send(`${upgrade}early`);
    // SETTINGS and WINDOW_UPDATE of the proxy.
    await until(
      () => peers[0] !== undefined && peers[0].frames.length >= 2 && cluster.stats.upstreamRequestsTotal.value === 1,
      () => "the connection",
    );
    const peer = peers[0]!;
    assert.equal(peer.heads.length, 0);
    if (settings === undefined) {
      // It was not asked for: another connection is.
      peer.socket.end();
      await until(
        () => peers.length === 2,
        () => "another connection",
      );
      peers[1]!.socket.end();
    } else {
      peer.send(settings);
    }
    await client.receive(expected);
    const told = peer.frames.flatMap(({ type, payload }) => {
      if (type === frameTypes.headers) return `headers ${peer.heads[0]!.fields.get(":method")}`;
      return type === frameTypes.data ? `data ${payload.toString()}` : [];
    });
    assert.deepEqual(told, seen);
  });
}

const takesTunnels = settingFrame(settingIds.enableConnectProtocol, 1);
const tunnelHead = (streamId: number): Buffer =>
  frame(
    frameTypes.headers,
    frameFlags.endHeaders,
    streamId,
    plainFields([
      [":method", "CONNECT"],
      [":protocol", "websocket"],
      [":scheme", "http"],
      [":path", "/"],
      [":authority", "a"],
    ]),
  );
const trailers = frame(
  frameTypes.headers,
  frameFlags.endStream | frameFlags.endHeaders,
  1,
  plainFields([["x-sum", "1"]]),
);
const tunnels = {
  upgradeTypes: new Set(["websocket"]),
  http2: { ...defaultHttp2Options, allowConnect: true },
};

test("what comes behind an extended CONNECT that waits comes behind it, its end as well", async (t) => {
  const silent = Buffer.alloc(0);
  const { port, peers } = await runHttp2Host(t, silent, () => undefined);
  const cluster = handBuiltCluster("c", [port], { protocol: "HTTP/2" });
  const proxy = await runProxy(t, { routes: { "/": forwardTo(cluster) }, config: tunnels });
  const client = await Http2Peer.open(proxy.port);
  t.after(() => client.socket.destroy());
  client.send(tunnelHead(1), frame(frameTypes.data, frameFlags.endStream, 1));
  client.send(tunnelHead(3), frame(frameTypes.data, 0, 3, "early"), frame(frameTypes.data, frameFlags.endStream, 3));
  await until(
    () => cluster.stats.upstreamRequestsTotal.value === 2,
    () => "both requests",
  );
  for (const peer of peers) peer.send(takesTunnels);
  const seen = (): readonly string[] =>
    peers.flatMap(({ frames }) =>
      frames
        .filter(({ streamId }) => streamId > 0)
        .map(({ type, flags, payload }) => `${type} ${flags} ${type === frameTypes.data ? payload.toString() : ""}`),
    );
  await until(
    () => seen().length >= 4,
    () => seen().join(),
  );
  const head = `${frameTypes.headers} ${frameFlags.endHeaders} `;
  const data = (text: string, flags = 0): string => `${frameTypes.data} ${flags} ${text}`;
  const wanted = [head, data("", frameFlags.endStream), head, data("early", frameFlags.endStream)];
  assert.deepEqual([...seen()].sort(), wanted.sort());
});

test("RFC 9113 8.5: fields behind a CONNECT, of a client, are an error of their stream", async (t) => {
  const { port, peers } = await runHttp2Host(t, takesTunnels, () => undefined);
  const cluster = handBuiltCluster("c", [port], { protocol: "HTTP/2" });
  const proxy = await runProxy(t, { routes: { "/": forwardTo(cluster) }, config: tunnels });
  const client = await Http2Peer.open(proxy.port);
  t.after(() => client.socket.destroy());
  client.send(tunnelHead(1), trailers);
  await client.until((peer) => peer.summary().includes("RST_STREAM"));
  assert.equal(client.summary(), "RST_STREAM 1 protocolError");
  assert.ok(
    !peers.some(({ frames }) => frames.some(({ type, streamId }) => type === frameTypes.headers && streamId === 0)),
  );
});

test("RFC 9113 8.5: fields behind the answer to a CONNECT, of a host, are an error of their stream", async (t) => {
  const accepted = frame(frameTypes.headers, frameFlags.endHeaders, 1, plainFields([[":status", "200"]]));
  const { port, peers } = await runHttp2Host(t, takesTunnels, (peer) => peer.send(accepted, trailers));
  const cluster = handBuiltCluster("c", [port], { protocol: "HTTP/2" });
  const proxy = await runProxy(t, { routes: { "/": forwardTo(cluster) }, config: tunnels });
  const client = await Http2Peer.open(proxy.port);
  t.after(() => client.socket.destroy());
  client.send(tunnelHead(1));
  await client.until((peer) => peer.summary().includes("RST_STREAM"));
  await peers[0]!.until((peer) => peer.summary().includes("RST_STREAM"));
  assert.equal(peers[0]!.summary(), "HEADERS 1 undefined, RST_STREAM 1 protocolError");
});
