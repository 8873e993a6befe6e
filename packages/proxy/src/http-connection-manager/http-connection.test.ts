// A downstream connection on real sockets: what bad input gets, who waits for whom, how connections end.
import assert from "node:assert/strict";
import type net from "node:net";
import { test } from "node:test";
import { forwardTo, handBuiltCluster } from "../testing/hand-built-runtime.ts";
import { ManualClock } from "../testing/manual-clock.ts";
import { Client, runBackend, runProxy, until } from "../testing/running-proxy.ts";
import type { HttpFilter } from "../http/filter.ts";
import type { RouteAction } from "../route/route-table.ts";
import type { HttpConnectionManagerConfig } from "./http-connection-manager-config.ts";

const ok = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
const get = (path: string, fields = ""): string => `GET ${path} HTTP/1.1\r\nHost: a\r\n${fields}\r\n`;
const answerOk = (socket: net.Socket): void => void socket.write(ok);

interface Refusal {
  readonly name: string;
  readonly input: string;
  readonly status: number;
  readonly log: string;
  readonly config?: Partial<HttpConnectionManagerConfig>;
}

const refusals: readonly Refusal[] = [
  { name: "a broken head", input: "GET / HTTP/1.1\nHost: a\n\n", status: 400, log: "400 DPE http1.bare_lf" },
  {
    name: "an oversize head",
    input: `GET / HTTP/1.1\r\nx: ${"a".repeat(70_000)}\r\n\r\n`,
    status: 431,
    log: "431 DPE http1.headers_too_large",
  },
  { name: "HTTP/1.0", input: "GET / HTTP/1.0\r\n\r\n", status: 426, log: "426 DPE low_version" },
  {
    name: "an unknown transfer coding",
    input: get("/", "Transfer-Encoding: xchunked\r\n"),
    status: 501,
    log: "501 DPE http1.invalid_transfer_encoding",
  },
  { name: "no Host", input: "GET / HTTP/1.1\r\n\r\n", status: 400, log: "400 - missing_host_header" },
  { name: "a fragment", input: get("/a#b"), status: 400, log: "400 - path_normalization_failed" },
  {
    name: "escaped slashes where they are refused",
    input: get("/a%2fb"),
    status: 400,
    log: "400 - path_normalization_failed",
    config: { pathWithEscapedSlashesAction: "reject_request" },
  },
  {
    name: "an upgrade that is not configured",
    input: get("/", "Connection: upgrade\r\nUpgrade: foo\r\n"),
    status: 403,
    log: "403 - upgrade_failed",
  },
];

for (const { name, input, status, log, config } of refusals) {
  test(`${name}: ${status}, closed, nothing forwarded`, async (t) => {
    const backend = await runBackend(t, answerOk);
    const routes = { "/": forwardTo(handBuiltCluster("c", [backend.port])) };
    const proxy = await runProxy(t, { routes, config: config ?? {} });
    const client = await Client.connect(t, proxy.port);
    client.send(input);
    const answer = await client.receiveEnd();
    assert.match(answer, new RegExp(`^HTTP/1\\.1 ${status} [^]*connection: close\\r\\n`));
    assert.deepEqual(proxy.log, [log]);
    assert.deepEqual(backend.seen, []);
  });
}

test("local answers keep the connection", async (t) => {
  const routes: Record<string, RouteAction> = {
    "/none": forwardTo(undefined),
    "/empty": forwardTo(handBuiltCluster("empty", [])),
    "/direct": { type: "direct", status: 203, body: Buffer.from("hello"), finalizeResponse: () => undefined },
    "/redirect": { type: "redirect", status: 301, location: () => "http://b/", finalizeResponse: () => undefined },
  };
  const proxy = await runProxy(t, { routes });
  const client = await Client.connect(t, proxy.port);
  client.send(["/x", "/none", "/empty", "/direct", "/redirect"].map((path) => get(path)).join(""));
  const text = await client.receive(/location[^]*\r\n\r\n$/);
  const statuses = [...text.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => Number(status));
  assert.deepEqual(statuses, [404, 503, 503, 203, 301]);
  assert.deepEqual(proxy.log, [
    "404 NR route_not_found",
    "503 NC cluster_not_found",
    "503 UH no_healthy_upstream",
    "203 - direct_response",
    "301 - direct_response",
  ]);
  assert.match(text, /hello/);
});

test("a HEAD request's local answer has the length and no body", async (t) => {
  const proxy = await runProxy(t, { routes: { "/": forwardTo(handBuiltCluster("empty", [])) } });
  const client = await Client.connect(t, proxy.port);
  client.send(`HEAD / HTTP/1.1\r\nHost: a\r\n\r\n${get("/")}`);
  const text = await client.receive(/no healthy upstream$/);
  assert.match(text, /^HTTP\/1\.1 503 [^]*content-length: 19\r\n[^]*\r\n\r\nHTTP\/1\.1 503 /);
});

test("a bad chunk behind a head that went ahead: 400, and the upstream connection is never used again", async (t) => {
  const backend = await runBackend(t, (socket, data) => {
    if (data.startsWith("GET")) socket.write(ok);
  });
  const cluster = handBuiltCluster("c", [backend.port]);
  const proxy = await runProxy(t, { routes: { "/": forwardTo(cluster) } });
  const client = await Client.connect(t, proxy.port);
  client.send("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n");
  await until(
    () => backend.seen.join("").includes("hi"),
    () => "the first chunk",
  );
  client.send("zz\r\n");
  assert.match(await client.receiveEnd(), /^HTTP\/1\.1 400 Bad Request\r\n/);
  await until(
    () => backend.seen.at(-1) === "<CLOSED>",
    () => "the reset",
  );
  assert.deepEqual(proxy.log, ["400 DPE http1.codec_error"]);
  const next = await Client.connect(t, proxy.port);
  next.send(get("/"));
  await next.receive(/ok$/);
  assert.equal(backend.sockets.length, 2);
});

test("a client that goes away: DC, and the upstream's work is stopped", async (t) => {
  const backend = await runBackend(t, () => undefined);
  const proxy = await runProxy(t, { routes: { "/": forwardTo(handBuiltCluster("c", [backend.port])) } });
  const client = await Client.connect(t, proxy.port);
  client.send(get("/"));
  await until(
    () => backend.seen.length === 1,
    () => "the request",
  );
  client.socket.resetAndDestroy();
  await until(
    () => backend.seen.at(-1) === "<CLOSED>",
    () => "the reset",
  );
  assert.deepEqual(proxy.log, ["0 DC downstream_remote_disconnect"]);
});

test("a client that ends its side at once is answered; one that does so later has gone", async (t) => {
  const clock = new ManualClock();
  const held: net.Socket[] = [];
  const backend = await runBackend(t, (socket) => held.push(socket));
  const proxy = await runProxy(t, { routes: { "/": forwardTo(handBuiltCluster("c", [backend.port])) }, clock });
  const quick = await Client.connect(t, proxy.port);
  quick.socket.end(get("/"));
  await until(
    () => held.length === 1,
    () => "the request",
  );
  // Only the other side's view tells that the FIN has come through: ask a second client's whole exchange.
  const other = await Client.connect(t, proxy.port);
  other.send(get("/none-of-it"));
  await until(
    () => held.length === 2,
    () => "the other request",
  );
  held[1]!.write(ok);
  await other.receive(/ok$/);
  held[0]!.write(ok);
  assert.match(await quick.receiveEnd(), /ok$/);

  const late = await Client.connect(t, proxy.port);
  late.send(get("/"));
  await until(
    () => backend.seen.filter((piece) => piece.startsWith("GET")).length === 3,
    () => "the third request",
  );
  clock.advance(200);
  late.socket.end();
  await until(
    () => proxy.log.length === 3,
    () => "the access log",
  );
  assert.equal(proxy.log[2], "0 DC downstream_remote_disconnect");
});

test("an answer cut off by the back end ends the client's connection", async (t) => {
  const cut: Record<string, string> = {
    "/length": "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhal",
    "/chunk": "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nha",
  };
  const backend = await runBackend(t, (socket, data) => void socket.end(cut[data.split(" ")[1]!] ?? ""));
  const proxy = await runProxy(t, { routes: { "/": forwardTo(handBuiltCluster("c", [backend.port])) } });
  for (const path of Object.keys(cut)) {
    const client = await Client.connect(t, proxy.port);
    client.send(get(path));
    const text = await client.receiveEnd();
    assert.match(text, /^HTTP\/1\.1 200 /);
    assert.doesNotMatch(text, /\r\n0\r\n\r\n$/);
  }
  const details = "200 UPE upstream_reset_after_response_started{protocol_error}";
  assert.deepEqual(proxy.log, [details, details]);
});

test("an early answer closes the connection, whatever of the request is still to come", async (t) => {
  const backend = await runBackend(t, answerOk);
  const proxy = await runProxy(t, { routes: { "/": forwardTo(handBuiltCluster("c", [backend.port])) } });
  const client = await Client.connect(t, proxy.port);
  client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhi");
  assert.match(await client.receiveEnd(), /connection: close\r\n\r\nok$/);
  await until(
    () => backend.seen.at(-1) === "<CLOSED>",
    () => "the upstream's end",
  );
});

test("websocket: bytes both ways after 101, and ends pass on", async (t) => {
  const backend = await runBackend(t, (socket, data, turn) => {
    if (turn === 0)
      socket.write("HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\nhello");
    else socket.write(`echo ${data}`);
  });
  const proxy = await runProxy(t, {
    routes: { "/": forwardTo(handBuiltCluster("c", [backend.port])) },
    config: { upgradeTypes: new Set(["websocket"]) },
  });
  const client = await Client.connect(t, proxy.port);
  client.send(get("/", "Connection: Upgrade\r\nUpgrade: websocket\r\nsec-websocket-key: x\r\n"));
  const head = await client.receive(/hello$/);
  assert.match(head, /^HTTP\/1\.1 101 Switching Protocols\r\n[^]*connection: upgrade\r\nupgrade: websocket\r\n/);
  assert.match(backend.seen[0]!, /connection: upgrade\r\nupgrade: websocket\r\n/);
  client.send("one");
  await client.receive(/echo one$/);
  client.socket.end();
  await client.receiveEnd();
  await until(
    () => proxy.log.length === 1,
    () => "the access log",
  );
  assert.deepEqual(proxy.log, ["101 - via_upstream"]);
  assert.equal(backend.seen.at(-1) === "<CLOSED>" || backend.seen.includes("<FIN>"), true);
});

test("websocket: a host that goes on after the client's end is given up once it is silent", async (t) => {
  const clock = new ManualClock();
  const backend = await runBackend(t, (socket, data) => {
    // This one does not end when its client does.
    socket.removeAllListeners("end");
    const head = "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n";
    socket.write(data === "last" ? "more" : head);
  });
  const proxy = await runProxy(t, {
    routes: { "/": forwardTo(handBuiltCluster("c", [backend.port])) },
    config: { upgradeTypes: new Set(["websocket"]) },
    clock,
  });
  const client = await Client.connect(t, proxy.port);
  client.send(get("/", "Connection: Upgrade\r\nUpgrade: websocket\r\nsec-websocket-key: x\r\n"));
  await client.receive(/\r\n\r\n$/);
  client.socket.end("last");
  await client.receive(/more$/);
  clock.advance(1_020);
  await client.receiveEnd();
  assert.deepEqual(proxy.log, ["101 DC downstream_remote_disconnect"]);
});

test("websocket: the upstream closes first", async (t) => {
  const backend = await runBackend(t, (socket) => {
    socket.end("HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\nbye");
  });
  const proxy = await runProxy(t, {
    routes: { "/": forwardTo(handBuiltCluster("c", [backend.port])) },
    config: { upgradeTypes: new Set(["websocket"]) },
  });
  const client = await Client.connect(t, proxy.port);
  client.send(get("/", "Connection: Upgrade\r\nUpgrade: websocket\r\nsec-websocket-key: x\r\n"));
  await client.receive(/bye$/);
  await client.receiveEnd();
  assert.deepEqual(proxy.log, ["101 UC upstream_reset_after_response_started{connection_termination}"]);
});

test("CONNECT becomes a plain connection where the route ends it", async (t) => {
  const backend = await runBackend(t, (socket, data) => void socket.write(`raw ${data}`));
  const upgrades = new Map([["connect", { enabled: true, terminatesConnect: true }]]);
  const routes = { CONNECT: forwardTo(handBuiltCluster("c", [backend.port]), { upgrades }) };
  const proxy = await runProxy(t, { routes });
  const client = await Client.connect(t, proxy.port);
  client.send("CONNECT b:80 HTTP/1.1\r\nHost: b:80\r\n\r\nearly");
  const text = await client.receive(/raw early$/);
  assert.match(text, /^HTTP\/1\.1 200 OK\r\n/);
  assert.doesNotMatch(text, /content-length|transfer-encoding/);
  backend.sockets[0]!.end();
  await client.receiveEnd();
  assert.deepEqual(proxy.log, ["200 - via_upstream"]);
});

test("a client that does not read slows the back end down", async (t) => {
  const total = 32 * 1024 * 1024;
  const backend = await runBackend(t, (socket) => {
    socket.write(`HTTP/1.1 200 OK\r\ncontent-length: ${total}\r\n\r\n`);
    socket.write(Buffer.alloc(total, 97));
  });
  const cluster = handBuiltCluster("c", [backend.port]);
  const proxy = await runProxy(t, { routes: { "/": forwardTo(cluster) } });
  const client = await Client.connect(t, proxy.port);
  client.socket.pause();
  client.send(get("/"));
  await until(
    () => backend.sockets.length === 1 && backend.sockets[0]!.bytesWritten > 0,
    () => "the answer's begin",
  );
  let before = -1;
  // What the kernel and the proxy take is bounded: at some point the back end gets rid of no more.
  await until(
    () => {
      const pending = backend.sockets[0]!.writableLength;
      const stands = pending === before;
      before = pending;
      return stands && pending > 0;
    },
    () => "a standstill",
  );
  assert.ok(backend.sockets[0]!.writableLength > 8 * 1024 * 1024, `${backend.sockets[0]!.writableLength} bytes left`);
  client.socket.resume();
  await until(
    () => proxy.log.length === 1,
    () => "the whole answer",
  );
  assert.equal(proxy.infos[0]!.bytesSent, total);
});

test("a back end that does not read slows the client down", async (t) => {
  const backend = await runBackend(t, () => undefined);
  const proxy = await runProxy(t, { routes: { "/": forwardTo(handBuiltCluster("c", [backend.port])) } });
  const client = await Client.connect(t, proxy.port);
  client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 33554432\r\n\r\n");
  await until(
    () => backend.sockets.length === 1,
    () => "the upstream connection",
  );
  backend.sockets[0]!.pause();
  client.socket.write(Buffer.alloc(33_554_432, 97));
  let before = -1;
  await until(
    () => {
      const pending = client.socket.writableLength;
      const stands = pending === before;
      before = pending;
      return stands && pending > 0;
    },
    () => "a standstill",
  );
  assert.ok(client.socket.writableLength > 8 * 1024 * 1024, `${client.socket.writableLength} bytes left`);
  backend.sockets[0]!.resume();
  await until(
    () => backend.seen.reduce((sum, piece) => sum + piece.length, 0) > 33_554_432,
    () => "the whole body",
  );
});

test("a filter may hold a request, change its route and let it go on with its body", async (t) => {
  const backend = await runBackend(t, (socket, data) => {
    if (data.includes("END")) socket.write(ok);
  });
  let release: (() => void) | undefined;
  const filter: HttpFilter = {
    name: "hold",
    onRequestHead: (stream) => {
      release = () => {
        stream.request.path = "/there";
        stream.clearRouteCache();
        stream.continueRequest();
      };
      return "stop";
    },
  };
  const routes = { "/there": forwardTo(handBuiltCluster("c", [backend.port])) };
  const proxy = await runProxy(t, { routes, filters: [filter] });
  const client = await Client.connect(t, proxy.port);
  client.send("POST /here HTTP/1.1\r\nHost: a\r\nContent-Length: 7\r\n\r\nbodyEND");
  await until(
    () => release !== undefined,
    () => "the filter",
  );
  release!();
  await client.receive(/ok$/);
  assert.match(backend.seen.join(""), /^POST \/there HTTP\/1\.1\r\n[^]*\r\n\r\nbodyEND$/);
});

test("an idle connection is closed after its time", async (t) => {
  const clock = new ManualClock();
  const proxy = await runProxy(t, { routes: {}, clock, config: { connectionIdleTimeoutMs: 1000 } });
  const client = await Client.connect(t, proxy.port);
  client.send(get("/"));
  await client.receive(/404/);
  clock.advance(900);
  client.send(get("/"));
  await client.receive(/404/);
  clock.advance(900);
  client.send(get("/"));
  await client.receive(/404/);
  clock.advance(1010);
  await client.receiveEnd();
});

test("a head that does not come to its end gets 408", async (t) => {
  const clock = new ManualClock();
  const proxy = await runProxy(t, { routes: {}, clock, config: { requestHeadersTimeoutMs: 500 } });
  const client = await Client.connect(t, proxy.port);
  client.send("GET / HTTP/1.1\r\n");
  await until(
    () => {
      clock.advance(100);
      return proxy.log.length === 1;
    },
    () => "the time-out",
  );
  assert.match(await client.receiveEnd(), /^HTTP\/1\.1 408 /);
  assert.deepEqual(proxy.log, ["408 - request_header_timeout"]);
});

test("trailers of an answer pass the filters in reverse, before the stream is complete", async (t) => {
  const chunked =
    "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\ngrpc-status: 5\r\nx-t: 1\r\n\r\n";
  const backend = await runBackend(t, (socket) => void socket.write(chunked));
  const cluster = handBuiltCluster("c", [backend.port], { enableTrailers: true });
  const heard: string[] = [];
  const listening = (name: string): HttpFilter => ({
    name,
    onResponseTrailers(_stream, trailers) {
      heard.push(`${name} ${trailers.get("x-t")}`);
      trailers.set("x-t", name);
    },
    onComplete: ({ info }) => void heard.push(`${name} complete ${info.responseTrailers?.get("grpc-status")}`),
  });
  const proxy = await runProxy(t, {
    routes: { "/": forwardTo(cluster) },
    filters: [listening("first"), listening("second")],
    config: { enableTrailers: true },
  });
  const client = await Client.connect(t, proxy.port);
  client.send(get("/"));
  await client.receive(/\r\n0\r\ngrpc-status: 5\r\nx-t: first\r\n\r\n$/);
  assert.deepEqual(heard, ["second 1", "first second", "first complete 5", "second complete 5"]);
});
