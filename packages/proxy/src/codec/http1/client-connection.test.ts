// What the client codec makes of a back end's answer: vectors of RFC 9112, each cut at every place.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Logging } from "@tulle/telemetry";
import { DataPath } from "../../worker/data-path.ts";
import { cutAt, readResponse, type ReadResponseOptions, type SeenClientSide } from "../../testing/codec-probe.ts";
import { FakeSocket } from "../../testing/fake-socket.ts";
import { HeaderMap } from "../../http/header-map.ts";
import type { RequestHead } from "../../http/message.ts";
import { Http1ClientConnection } from "./client-connection.ts";

interface Case extends ReadResponseOptions {
  readonly name: string;
  readonly input: string;
  readonly expected: SeenClientSide;
}

const answer = (overrides: Partial<NonNullable<SeenClientSide["response"]>>, reusable = true): SeenClientSide => ({
  informational: [],
  response: { status: 200, headers: [], body: "", ...overrides },
  reusable,
});
const broken: SeenClientSide = { informational: [], reset: "protocol_error", reusable: false };
const length2 = ["content-length", "2"];

const cases: readonly Case[] = [
  {
    name: "by length",
    input: "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
    expected: answer({ headers: length2, body: "ok" }),
  },
  {
    name: "without a reason phrase",
    input: "HTTP/1.1 200\r\nContent-Length: 2\r\n\r\nok",
    expected: answer({ headers: length2, body: "ok" }),
  },
  {
    name: "chunked with trailers",
    input: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nX: 1\r\n\r\n",
    expected: answer({ body: "ok", trailers: ["x", "1"] }),
  },
  { name: "until close", input: "HTTP/1.1 200 OK\r\n\r\nok", ended: true, expected: answer({ body: "ok" }, false) },
  {
    name: "HTTP/1.0 until close",
    input: "HTTP/1.0 200 OK\r\n\r\nok",
    ended: true,
    expected: answer({ body: "ok" }, false),
  },
  {
    name: "HTTP/1.0 kept alive",
    input: "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nok",
    expected: answer({ headers: length2, body: "ok" }),
  },
  {
    name: "Connection: close",
    input: "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok",
    expected: answer({ headers: length2, body: "ok" }, false),
  },
  { name: "204", input: "HTTP/1.1 204 No Content\r\n\r\n", expected: answer({ status: 204 }) },
  {
    name: "304 with a length and no body",
    input: "HTTP/1.1 304 Not Modified\r\nContent-Length: 2\r\n\r\n",
    expected: answer({ status: 304, headers: length2 }),
  },
  {
    name: "HEAD",
    method: "HEAD",
    input: "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n",
    expected: answer({ headers: length2 }),
  },
  {
    name: "1xx before the answer",
    input: "HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
    expected: { ...answer({ headers: length2, body: "ok" }), informational: [103] },
  },
  {
    name: "101 that was asked for",
    upgrade: "websocket",
    input: "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\nraw",
    expected: answer({ status: 101, body: "raw" }, false),
  },
  {
    name: "no length goes with the head of a tunnel",
    method: "CONNECT",
    upgrade: "connect",
    input: "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nraw",
    expected: answer({ body: "raw" }, false),
  },
  {
    name: "an upgrade refused",
    upgrade: "websocket",
    input: "HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno",
    expected: answer({ status: 403, headers: length2, body: "no" }, false),
  },
  {
    name: "hop-by-hop fields are gone",
    input: "HTTP/1.1 200 OK\r\nConnection: x-a\r\nX-A: 1\r\nKeep-Alive: 1\r\nContent-Length: 0\r\n\r\n",
    expected: answer({ headers: ["content-length", "0"] }),
  },
  {
    name: "bytes behind the answer forbid reuse",
    input: "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokEXTRA",
    expected: answer({ headers: length2, body: "ok" }, false),
  },
  {
    name: "a whole second answer behind the first forbids reuse",
    input: "HTTP/1.1 204 No Content\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
    expected: answer({ status: 204 }, false),
  },

  { name: "garbage", input: "hello\r\n\r\n", expected: broken },
  { name: "a two-digit status", input: "HTTP/1.1 20 OK\r\n\r\n", expected: broken },
  { name: "a status with a sign for a digit", input: "HTTP/1.1 2:0 OK\r\nContent-Length: 0\r\n\r\n", expected: broken },
  { name: "another version", input: "HTTP/2.0 200 OK\r\n\r\n", expected: broken },
  { name: "a bare LF", input: "HTTP/1.1 200 OK\nContent-Length: 2\n\nok", expected: broken },
  {
    name: "a bare LF behind a long field",
    input: `HTTP/1.1 200 OK\r\nx: ${"a".repeat(600)}\r\ny: z\n\nok`,
    expected: broken,
  },
  { name: "obs-fold", input: "HTTP/1.1 200 OK\r\nx: a\r\n b\r\n\r\n", expected: broken },
  { name: "a blank before the colon", input: "HTTP/1.1 200 OK\r\nContent-Length : 2\r\n\r\nok", expected: broken },
  {
    name: "Content-Length with Transfer-Encoding",
    input: "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    expected: broken,
  },
  {
    name: "two lengths",
    input: "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nok",
    expected: broken,
  },
  { name: "an unknown transfer coding", input: "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n", expected: broken },
  { name: "204 with a body", input: "HTTP/1.1 204 No Content\r\nContent-Length: 2\r\n\r\nok", expected: broken },
  { name: "101 that nobody asked for", input: "HTTP/1.1 101 Switching Protocols\r\n\r\n", expected: broken },
  { name: "cut in the head", input: "HTTP/1.1 200 OK\r\nCon", ended: true, expected: broken },
  { name: "cut in the body", input: "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok", ended: true, expected: broken },
  {
    name: "cut in a chunk",
    input: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nok",
    ended: true,
    expected: broken,
  },
  { name: "a bad chunk", input: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", expected: broken },
  {
    name: "1xx for ever",
    input: "HTTP/1.1 100 Continue\r\n\r\n".repeat(101),
    expected: { ...broken, informational: Array.from({ length: 100 }, () => 100) },
  },
];

for (const { name, input, expected, ...options } of cases) {
  test(name, () => {
    for (let at = 0; at < input.length; at += 1) {
      assert.deepEqual(readResponse(cutAt(input, at), options), expected, `cut at ${at}`);
    }
  });
}

test("a head is bounded", () => {
  const seen = readResponse([Buffer.from(`HTTP/1.1 200 OK\r\nx: ${"a".repeat(61 * 1024)}\r\n\r\n`)]);
  assert.equal(seen.reset, "protocol_error");
});

test("a connection whose last reader paused it reads again when it is free", () => {
  const fake = new FakeSocket();
  const dataPath = new DataPath({ logging: new Logging({ level: "off" }) });
  let free = false;
  const connection = new Http1ClientConnection(
    fake.socket,
    {
      onConnected: () => undefined,
      onStreamLimit: () => undefined,
      onStreamEnd: (reusable) => (free = reusable),
      onClosed: () => undefined,
    },
    { maxHeadBytes: 60 * 1024, maxFieldCount: 100, enableTrailers: true, bufferLimitBytes: 1024 },
    dataPath,
  );
  fake.emit("connect");
  connection.open({
    onInformational: () => undefined,
    onResponseHead: () => undefined,
    onResponseData: (_chunk, endStream) => {
      if (!endStream) connection.pauseResponse();
    },
    onResponseTrailers: () => undefined,
    onUpstreamReset: () => undefined,
    onUpstreamDrained: () => undefined,
  });
  const head: RequestHead = {
    method: "GET",
    scheme: "http",
    authority: "a",
    path: "/",
    protocol: "HTTP/1.1",
    headers: new HeaderMap(),
  };
  connection.sendRequestHead(head, true);
  dataPath.turn.flushRound();
  connection.onData(Buffer.from("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n"));
  assert.equal(fake.paused, true);
  connection.onData(Buffer.from("0\r\n\r\n"));
  assert.deepEqual([free, fake.paused], [true, false]);
});
