// A connection of HTTP/2 through the whole data path: Node's own client, which speaks it by nghttp2, and back ends of
// HTTP/1.1.
import assert from "node:assert/strict";
import { once } from "node:events";
import http from "node:http";
import http2 from "node:http2";
import type { AddressInfo } from "node:net";
import { test, type TestContext } from "node:test";
import { forwardTo, handBuiltCluster } from "../../testing/hand-built-runtime.ts";
import { frame, Http2Peer, plainFields } from "../../testing/http2-peer.ts";
import { runProxy } from "../../testing/running-proxy.ts";
import { errorCodes, frameFlags, frameTypes } from "./frame.ts";

interface Answer {
  readonly headers: http2.IncomingHttpHeaders & http2.IncomingHttpStatusHeader;
  readonly body: Buffer;
  readonly trailers: http2.IncomingHttpHeaders;
}

async function call(
  session: http2.ClientHttp2Session,
  headers: http2.OutgoingHttpHeaders,
  body?: Buffer,
): Promise<Answer> {
  const stream = session.request(headers, { endStream: body === undefined });
  if (body !== undefined) stream.end(body);
  let trailers: http2.IncomingHttpHeaders = {};
  stream.on("trailers", (received: http2.IncomingHttpHeaders) => (trailers = received));
  const [answer] = (await once(stream, "response")) as [Answer["headers"]];
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(chunk as Buffer);
  return { headers: answer, body: Buffer.concat(chunks), trailers };
}

async function backEnd(t: TestContext, onRequest: http.RequestListener): Promise<number> {
  const server = http.createServer(onRequest).listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  return (server.address() as AddressInfo).port;
}

async function connected(t: TestContext, port: number): Promise<http2.ClientHttp2Session> {
  const session = http2.connect(`http://127.0.0.1:${port}`);
  t.after(() => session.destroy());
  await once(session, "connect");
  return session;
}

test("requests side by side, their bodies both ways, to a host of HTTP/1.1", async (t) => {
  const port = await backEnd(t, (request, response) => {
    response.setHeader("x-path", request.url!);
    response.setHeader("x-host", request.headers.host!);
    request.pipe(response);
  });
  const proxy = await runProxy(t, { routes: { "/": forwardTo(handBuiltCluster("c", [port])) } });
  const session = await connected(t, proxy.port);
  const sizes = [0, 1, 100, 16_384, 16_385, 300_000, 3_000_000];
  const answers = await Promise.all(
    sizes.map((size, index) =>
      call(
        session,
        { ":method": "POST", ":path": `/${index}`, ":authority": "shop.example.com" },
        Buffer.alloc(size, 97 + index),
      ),
    ),
  );
  for (const [index, { headers, body }] of answers.entries()) {
    assert.equal(headers[":status"], 200);
    assert.equal(headers["x-path"], `/${index}`);
    assert.equal(headers["x-host"], "shop.example.com");
    assert.ok(body.equals(Buffer.alloc(sizes[index]!, 97 + index)), `${body.length} of ${sizes[index]}`);
  }
  assert.deepEqual(
    proxy.log,
    sizes.map(() => "200 - via_upstream"),
  );
  assert.ok(proxy.infos.every(({ request }) => request?.protocol === "HTTP/2"));
});

test("HEAD, 204 and 304 have no body, and cookies are one", async (t) => {
  const port = await backEnd(t, (request, response) => {
    response.setHeader("x-cookie", request.headers.cookie ?? "");
    response.statusCode = Number(request.url!.slice(1));
    if (response.statusCode === 200) response.setHeader("content-length", 4);
    response.end(response.statusCode === 200 ? "text" : undefined);
  });
  const proxy = await runProxy(t, { routes: { "/": forwardTo(handBuiltCluster("c", [port])) } });
  const session = await connected(t, proxy.port);
  const head = await call(session, { ":method": "HEAD", ":path": "/200", cookie: ["a=1", "b=2"] });
  assert.equal(head.headers["content-length"], "4");
  assert.equal(head.headers["x-cookie"], "a=1; b=2");
  assert.equal(head.body.length, 0);
  for (const status of [204, 304]) {
    const answer = await call(session, { ":path": `/${status}` });
    assert.equal(answer.headers[":status"], status);
    assert.equal(answer.body.length, 0);
  }
});

test("a client that resets is told apart from one that goes, and others on its connection go on", async (t) => {
  const waiting: http.ServerResponse[] = [];
  const port = await backEnd(t, (request, response) => {
    if (request.url === "/slow") waiting.push(response);
    else response.end("fast");
  });
  const proxy = await runProxy(t, { routes: { "/": forwardTo(handBuiltCluster("c", [port])) } });
  const session = await connected(t, proxy.port);
  const slow = session.request({ ":path": "/slow" });
  slow.on("error", () => undefined);
  assert.equal((await call(session, { ":path": "/" })).body.toString(), "fast");
  slow.close(http2.constants.NGHTTP2_CANCEL);
  await once(slow, "close");
  assert.equal((await call(session, { ":path": "/" })).body.toString(), "fast");
  assert.deepEqual(proxy.log, ["200 - via_upstream", "0 DR http2.remote_reset", "200 - via_upstream"]);
});

test("what a client says of a stream that it gives up, and what is no message", async (t) => {
  const port = await backEnd(t, () => undefined);
  const proxy = await runProxy(t, { routes: { "/": forwardTo(handBuiltCluster("c", [port])) } });
  const head = plainFields([
    [":method", "POST"],
    [":scheme", "http"],
    [":path", "/"],
    [":authority", "a"],
    ["content-length", "1"],
  ]);
  const peer = await Http2Peer.open(proxy.port);
  const refused = Buffer.from([0, 0, 0, errorCodes.refusedStream]);
  peer.send(
    frame(frameTypes.headers, frameFlags.endHeaders, 1, head),
    frame(frameTypes.rstStream, 0, 1, refused),
    frame(frameTypes.headers, frameFlags.endHeaders, 3, head),
    frame(frameTypes.data, 0, 3, "more than one"),
  );
  await peer.until(() => proxy.log.length === 2);
  assert.deepEqual(proxy.log, ["0 DR http2.remote_refuse", "0 DPE http2.violation.of.messaging.rule"]);
  await peer.until(() => peer.summary() === "RST_STREAM 3 protocolError");
  peer.socket.destroy();
});

test("who connects to a proxy that drains is answered, and told to leave by that", async (t) => {
  const port = await backEnd(t, (_request, response) => void response.end("answered"));
  const proxy = await runProxy(t, { routes: { "/": forwardTo(handBuiltCluster("c", [port])) } });
  await proxy.host.drain({ leastMs: 0, mostMs: 60_000 });
  const session = await connected(t, proxy.port);
  // By now it has read all that the proxy says to a newcomer.
  const { promise: pong, resolve, reject } = Promise.withResolvers<void>();
  session.ping((error) => (error === null ? resolve() : reject(error)));
  await pong;
  const goAway = once(session, "goaway") as Promise<[number, number]>;
  assert.equal((await call(session, { ":path": "/" })).body.toString(), "answered");
  assert.equal((await goAway)[0], http2.constants.NGHTTP2_NO_ERROR);
  if (!session.closed) await once(session, "close");
});

test("a drained connection answers what is under way, and ends", async (t) => {
  const waiting: http.ServerResponse[] = [];
  const port = await backEnd(t, (_request, response) => void waiting.push(response));
  const proxy = await runProxy(t, { routes: { "/": forwardTo(handBuiltCluster("c", [port])) } });
  const session = await connected(t, proxy.port);
  const answer = call(session, { ":path": "/" });
  while (waiting.length === 0) await new Promise((resolve) => setImmediate(resolve));
  const goAway = once(session, "goaway") as Promise<[number, number]>;
  proxy.host.remove("hand-built", 60_000);
  assert.equal((await goAway)[0], http2.constants.NGHTTP2_NO_ERROR);
  waiting[0]!.end("late");
  assert.equal((await answer).body.toString(), "late");
  if (!session.closed) await once(session, "close");
});
