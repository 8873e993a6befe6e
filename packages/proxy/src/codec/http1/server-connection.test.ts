// What the server codec makes of bytes: vectors of RFC 9112, each cut at every place and fed byte by byte.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Logging } from "@tulle/telemetry";
import { DataPath } from "../../worker/data-path.ts";
import { cutAt, defaultServerSettings, readRequests, type SeenServerSide } from "../../testing/codec-probe.ts";
import { FakeSocket } from "../../testing/fake-socket.ts";
import { ManualClock } from "../../testing/manual-clock.ts";
import { RoundClock } from "../../testing/round-clock.ts";
import { HeaderMap } from "../../http/header-map.ts";
import type { ResponseSender } from "../stream-codec.ts";
import { Http1ServerConnection } from "./server-connection.ts";

interface Case {
  readonly name: string;
  readonly input: string;
  readonly expected: SeenServerSide;
}

const request = (overrides: Partial<SeenServerSide["requests"][number]> = {}): SeenServerSide["requests"][number] => ({
  method: "GET",
  path: "/",
  authority: "a",
  headers: [],
  body: "",
  ...overrides,
});
const accepted = (...requests: SeenServerSide["requests"]): SeenServerSide => ({ requests, closed: false });
const refused = (error: string): SeenServerSide => ({ requests: [], error, closed: true });
const get = (fields: string): string => `GET / HTTP/1.1\r\nHost: a\r\n${fields}\r\n`;
const post = (fields: string, body: string): string => `POST / HTTP/1.1\r\nHost: a\r\n${fields}\r\n${body}`;
const codecError = refused("400 http1.codec_error");
const headers = (count: number): string => Array.from({ length: count }, (_, index) => `x${index}: 1\r\n`).join("");

const cases: readonly Case[] = [
  { name: "a plain request", input: get(""), expected: accepted(request()) },
  {
    name: "names in lower case, blanks around values gone",
    input: get("X-A: \t b c \t\r\n"),
    expected: accepted(request({ headers: ["x-a", "b c"] })),
  },
  { name: "an empty value", input: get("X-A:\r\n"), expected: accepted(request({ headers: ["x-a", ""] })) },
  { name: "obs-text in a value", input: get("x: a\xe9\r\n"), expected: accepted(request({ headers: ["x", "a\xe9"] })) },
  { name: "empty lines before a request", input: `\r\n\r\n${get("")}`, expected: accepted(request()) },
  {
    name: "two pipelined requests",
    input: get("") + get("x: 1\r\n"),
    expected: accepted(request(), request({ headers: ["x", "1"] })),
  },
  {
    name: "Content-Length",
    input: post("Content-Length: 2\r\n", "hi"),
    expected: accepted(request({ method: "POST", headers: ["content-length", "2"], body: "hi" })),
  },
  {
    name: "a body and a request behind it",
    input: post("Content-Length: 2\r\n", "hi") + get(""),
    expected: accepted(request({ method: "POST", headers: ["content-length", "2"], body: "hi" }), request()),
  },
  {
    name: "chunked",
    input: post("Transfer-Encoding: Chunked\r\n", "2\r\nhi\r\nA\r\n0123456789\r\n0\r\n\r\n"),
    expected: accepted(request({ method: "POST", body: "hi0123456789" })),
  },
  {
    name: "chunk extensions are dropped",
    input: post("Transfer-Encoding: chunked\r\n", '2;a=b;c="d"\r\nhi\r\n0;x\r\n\r\n'),
    expected: accepted(request({ method: "POST", body: "hi" })),
  },
  {
    name: "trailers",
    input: post("Transfer-Encoding: chunked\r\n", "2\r\nhi\r\n0\r\nX-T: 1\r\n\r\n"),
    expected: accepted(request({ method: "POST", body: "hi", trailers: ["x-t", "1"] })),
  },
  {
    name: "absolute form beats Host",
    input: "GET http://b:81/p?q HTTP/1.1\r\nHost: a\r\n\r\n",
    expected: accepted(request({ authority: "b:81", path: "/p?q" })),
  },
  {
    name: "absolute form without path",
    input: "GET http://b HTTP/1.1\r\nHost: a\r\n\r\n",
    expected: accepted(request({ authority: "b" })),
  },
  {
    name: "absolute form with only a query",
    input: "GET http://b?q HTTP/1.1\r\nHost: a\r\n\r\n",
    expected: accepted(request({ authority: "b", path: "/?q" })),
  },
  {
    name: "asterisk form",
    input: "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n",
    expected: accepted(request({ method: "OPTIONS", path: "*" })),
  },
  {
    name: "hop-by-hop fields and those that Connection names are gone",
    input: get(
      "Connection: x-a, keep-alive\r\nx-a: 1\r\nKeep-Alive: 5\r\nProxy-Connection: x\r\nTE: trailers, gzip\r\nx-b: 2\r\n",
    ),
    expected: accepted(request({ headers: ["x-b", "2", "te", "trailers"] })),
  },
  {
    name: "h2c is not taken up",
    input: get("Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAA\r\n"),
    expected: accepted(request()),
  },
  { name: "Connection: close", input: get("Connection: close\r\n"), expected: { requests: [request()], closed: true } },
  {
    name: "an upgrade",
    input: get("Connection: Upgrade\r\nUpgrade: WebSocket\r\n"),
    expected: { requests: [request({ upgrade: "websocket" })], closed: true },
  },
  {
    name: "CONNECT",
    input: "CONNECT b:443 HTTP/1.1\r\nHost: b:443\r\n\r\n",
    expected: {
      requests: [request({ method: "CONNECT", path: "", authority: "b:443", upgrade: "connect" })],
      closed: true,
    },
  },
  {
    name: "100 fields",
    input: `GET / HTTP/1.1\r\nHost: a\r\n${headers(99)}\r\n`,
    expected: accepted(
      request({
        headers: headers(99)
          .split("\r\n")
          .slice(0, -1)
          .flatMap((line) => line.split(": ")),
      }),
    ),
  },

  { name: "101 fields", input: get(headers(100)), expected: refused("431 http1.too_many_headers") },
  {
    name: "a bare LF behind the request line",
    input: "GET / HTTP/1.1\nHost: a\r\n\r\n",
    expected: refused("400 http1.bare_lf"),
  },
  {
    name: "a bare LF behind a field",
    input: "GET / HTTP/1.1\r\nHost: a\nx: y\r\n\r\n",
    expected: refused("400 http1.bare_lf"),
  },
  {
    name: "a bare LF behind a long field",
    input: `GET / HTTP/1.1\r\nHost: a\r\nx: ${"a".repeat(600)}\r\ny: z\n\r\n`,
    expected: refused("400 http1.bare_lf"),
  },
  { name: "nothing but bare LFs", input: "GET / HTTP/1.1\nHost: a\n\n", expected: refused("400 http1.bare_lf") },
  { name: "a bare CR in a value", input: get("x: a\rb\r\n"), expected: refused("400 http1.bare_cr") },
  {
    name: "a bare CR in the request line",
    input: "GET /\r HTTP/1.1\r\nHost: a\r\n\r\n",
    expected: refused("400 http1.bare_cr"),
  },
  { name: "obs-fold", input: get("x: a\r\n b\r\n"), expected: refused("400 http1.obs_fold") },
  {
    name: "a field line that begins with a blank",
    input: "GET / HTTP/1.1\r\n Host: a\r\n\r\n",
    expected: refused("400 http1.obs_fold"),
  },
  { name: "a blank before the colon", input: get("x : a\r\n"), expected: codecError },
  { name: "a name that is no token", input: get("x(y): a\r\n"), expected: codecError },
  { name: "an empty name", input: get(": a\r\n"), expected: codecError },
  { name: "a line without colon", input: get("abc\r\n"), expected: codecError },
  { name: "NUL in a value", input: get("x: a\0b\r\n"), expected: refused("400 http1.invalid_characters") },
  { name: "DEL in a value", input: get("x: a\x7fb\r\n"), expected: refused("400 http1.invalid_characters") },
  {
    name: "a control character in the target",
    input: "GET /\x01 HTTP/1.1\r\nHost: a\r\n\r\n",
    expected: refused("400 http1.invalid_characters"),
  },
  { name: "obs-text in the target", input: "GET /\xe9 HTTP/1.1\r\nHost: a\r\n\r\n", expected: codecError },
  { name: "a blank in the target", input: "GET /a b HTTP/1.1\r\nHost: a\r\n\r\n", expected: codecError },
  { name: "two blanks behind the method", input: "GET  / HTTP/1.1\r\nHost: a\r\n\r\n", expected: codecError },
  { name: "a blank behind the version", input: "GET / HTTP/1.1 \r\nHost: a\r\n\r\n", expected: codecError },
  { name: "an unknown method", input: "FOO / HTTP/1.1\r\nHost: a\r\n\r\n", expected: codecError },
  { name: "a method in lower case", input: "get / HTTP/1.1\r\nHost: a\r\n\r\n", expected: codecError },
  { name: "a relative target", input: "GET a HTTP/1.1\r\nHost: a\r\n\r\n", expected: codecError },
  { name: "asterisk with GET", input: "GET * HTTP/1.1\r\nHost: a\r\n\r\n", expected: refused("400 http1.invalid_url") },
  {
    name: "user information in an absolute target",
    input: "GET http://u@b/ HTTP/1.1\r\nHost: a\r\n\r\n",
    expected: refused("400 http1.invalid_url"),
  },
  {
    name: "an https target on a plain connection",
    input: "GET https://b/ HTTP/1.1\r\nHost: a\r\n\r\n",
    expected: refused("403 http1.https_url_on_plaintext_connection"),
  },
  {
    name: "a target of another scheme",
    input: "GET ftp://b/ HTTP/1.1\r\nHost: a\r\n\r\n",
    expected: refused("400 http1.invalid_scheme"),
  },
  {
    name: "CONNECT without port",
    input: "CONNECT b HTTP/1.1\r\nHost: b\r\n\r\n",
    expected: refused("400 http1.invalid_url"),
  },
  {
    name: "CONNECT with a path",
    input: "CONNECT / HTTP/1.1\r\nHost: b\r\n\r\n",
    expected: refused("400 http1.invalid_url"),
  },
  {
    name: "CONNECT with a body",
    input: "CONNECT b:1 HTTP/1.1\r\nHost: b\r\nContent-Length: 2\r\n\r\n",
    expected: refused("400 http1.body_disallowed"),
  },
  { name: "HTTP/1.0", input: "GET / HTTP/1.0\r\nHost: a\r\n\r\n", expected: refused("426 low_version") },
  { name: "HTTP/0.9", input: "GET /\r\n\r\n", expected: refused("426 low_version") },
  { name: "HTTP/2.0", input: "GET / HTTP/2.0\r\nHost: a\r\n\r\n", expected: refused("426 low_version") },
  { name: "another protocol's version", input: "GET / HTTX/1.1\r\nHost: a\r\n\r\n", expected: codecError },
  { name: "the preface of HTTP/2", input: "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", expected: codecError },
  { name: "the beginning of a TLS handshake", input: "\x16\x03\x01", expected: codecError },
  { name: "two Host fields", input: get("Host: b\r\n"), expected: refused("400 http1.multiple_host_headers") },
  {
    name: "a Host with a slash",
    input: "GET / HTTP/1.1\r\nHost: a/b\r\n\r\n",
    expected: refused("400 http.invalid_authority"),
  },
  ...["[::1", "[::1]x", "[fe80::1%25e]", "a%2fb", "a@b", "a:65536", ":80", "a:b"].map((host) => ({
    name: `a Host that names none: ${host}`,
    input: `GET / HTTP/1.1\r\nHost: ${host}\r\n\r\n`,
    expected: refused("400 http.invalid_authority"),
  })),
  {
    name: "a Host that names none beside a target that does",
    input: "GET http://a/ HTTP/1.1\r\nHost: a%2fb\r\n\r\n",
    expected: refused("400 http.invalid_authority"),
  },
  ...["[::1", "[::1]:", "a%2fb", "a:65536", "a:", "a,b", ""].map((host) => ({
    name: `a target whose host is none: ${host}`,
    input: `GET http://${host}/ HTTP/1.1\r\nHost: a\r\n\r\n`,
    expected: refused("400 http1.invalid_url"),
  })),
  ...["[::1]", "a%2fb:80", "a:65536", "[::1:80", "u@a:80"].map((target) => ({
    name: `CONNECT to what is no host with a port: ${target}`,
    input: `CONNECT ${target} HTTP/1.1\r\nHost: a\r\n\r\n`,
    expected: refused("400 http1.invalid_url"),
  })),
  {
    name: "Content-Length with Transfer-Encoding",
    input: post("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n"),
    expected: refused("400 http1.content_length_and_chunked_not_allowed"),
  },
  {
    name: "Content-Length twice and equal",
    input: post("Content-Length: 2\r\nContent-Length: 2\r\n", "hi"),
    expected: codecError,
  },
  { name: "Content-Length as a list", input: post("Content-Length: 2, 2\r\n", "hi"), expected: codecError },
  { name: "Content-Length with a sign", input: post("Content-Length: +2\r\n", "hi"), expected: codecError },
  { name: "Content-Length negative", input: post("Content-Length: -2\r\n", "hi"), expected: codecError },
  { name: "Content-Length empty", input: post("Content-Length:\r\n", ""), expected: codecError },
  { name: "Content-Length in hex", input: post("Content-Length: 0x2\r\n", "hi"), expected: codecError },
  {
    name: "Content-Length too large",
    input: post("Content-Length: 99999999999999999999\r\n", ""),
    expected: codecError,
  },
  {
    name: "an unknown transfer coding",
    input: post("Transfer-Encoding: xchunked\r\n", ""),
    expected: refused("501 http1.invalid_transfer_encoding"),
  },
  {
    name: "two transfer codings",
    input: post("Transfer-Encoding: gzip, chunked\r\n", ""),
    expected: refused("501 http1.invalid_transfer_encoding"),
  },
  {
    name: "chunked twice",
    input: post("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", ""),
    expected: refused("501 http1.invalid_transfer_encoding"),
  },
  {
    name: "a vertical tab before chunked",
    input: post("Transfer-Encoding: \x0bchunked\r\n", ""),
    expected: refused("400 http1.invalid_characters"),
  },
  {
    name: "Connection names Content-Length",
    input: post("Connection: content-length\r\nContent-Length: 2\r\n", "hi"),
    expected: refused("400 http1.connection_header_rejected"),
  },
  ...["x-forwarded-for", "X-Envoy-Internal", ":path", "close, Authorization", "a,b,c,d,e,f,g,h,i,j"].map((options) => ({
    name: `Connection names what it may not: ${options}`,
    input: get(`Connection: ${options}\r\n`),
    expected: refused("400 http1.connection_header_rejected"),
  })),
  {
    name: "a chunk size that is no number",
    input: post("Transfer-Encoding: chunked\r\n", "zz\r\n"),
    expected: codecError,
  },
  {
    name: "a chunk size with prefix",
    input: post("Transfer-Encoding: chunked\r\n", "0x2\r\nhi\r\n"),
    expected: codecError,
  },
  {
    name: "a chunk size with sign",
    input: post("Transfer-Encoding: chunked\r\n", "+2\r\nhi\r\n"),
    expected: codecError,
  },
  { name: "an empty chunk size", input: post("Transfer-Encoding: chunked\r\n", "\r\n"), expected: codecError },
  {
    name: "a chunk size too large",
    input: post("Transfer-Encoding: chunked\r\n", "fffffffffffffffff\r\n"),
    expected: codecError,
  },
  {
    name: "a chunk longer than its size",
    input: post("Transfer-Encoding: chunked\r\n", "2\r\nhiX\r\n"),
    expected: codecError,
  },
  {
    name: "a bare LF behind a chunk size",
    input: post("Transfer-Encoding: chunked\r\n", "2\nhi\r\n0\r\n\r\n"),
    expected: codecError,
  },
  {
    name: "a bare LF behind a chunk",
    input: post("Transfer-Encoding: chunked\r\n", "2\r\nhi\n0\r\n\r\n"),
    expected: codecError,
  },
  {
    name: "a bare LF in trailers",
    input: post("Transfer-Encoding: chunked\r\n", "0\r\nx: y\n\r\n"),
    expected: codecError,
  },
  {
    name: "a control character in a chunk extension",
    input: post("Transfer-Encoding: chunked\r\n", "2;a\x01\r\nhi\r\n0\r\n\r\n"),
    expected: codecError,
  },
  {
    name: "framing in trailers",
    input: post("Transfer-Encoding: chunked\r\n", "0\r\nContent-Length: 2\r\n\r\n"),
    expected: codecError,
  },
];

for (const { name, input, expected } of cases) {
  test(name, () => {
    const bytes = Buffer.from(input, "latin1");
    const split = Array.from({ length: bytes.length }, (_, at) => bytes.subarray(at, at + 1));
    const results = [split, ...Array.from({ length: bytes.length }, (_, at) => cutAt(input, at))].map(readRequests1);
    for (const [index, result] of results.entries()) assert.deepEqual(result, expected, `cut ${index - 1}`);
  });
}

function readRequests1(chunks: Buffer[]): SeenServerSide {
  const { written: _written, ...seen } = readRequests(chunks);
  return seen;
}

test("a head is bounded, whether it ends or not", () => {
  const long = "a".repeat(61 * 1024);
  for (const input of [
    get(`x: ${long}\r\n`),
    `GET / HTTP/1.1\r\nx: ${long}`,
    `GET /${long} HTTP/1.1\r\nHost: a\r\n\r\n`,
  ]) {
    assert.equal(readRequests([Buffer.from(input)]).error, "431 http1.headers_too_large");
  }
});

test("chunk lines and extensions are bounded", () => {
  const extensions = `1;${"a".repeat(3000)}\r\nx\r\n`.repeat(6);
  for (const body of [`2;${"a".repeat(5000)}`, extensions]) {
    assert.equal(
      readRequests([Buffer.from(post("Transfer-Encoding: chunked\r\n", body))]).error,
      "400 http1.codec_error",
    );
  }
});

test("trailers that are not wanted are read and dropped", () => {
  const input = post("Transfer-Encoding: chunked\r\n", "0\r\nX-T: 1\r\n\r\n");
  const { requests } = readRequests([Buffer.from(input)], { enableTrailers: false });
  assert.deepEqual(requests, [request({ method: "POST" })]);
});

test("an upgrade is taken neither from HTTP/1.0 nor with a body", () => {
  const fields = "Host: a\r\nConnection: upgrade\r\nUpgrade: websocket\r\n";
  const upgradeOf = (text: string): string | undefined =>
    readRequests([Buffer.from(text)], { acceptHttp10: true }).requests[0]!.upgrade;
  assert.equal(upgradeOf(`GET / HTTP/1.1\r\n${fields}\r\n`), "websocket");
  assert.equal(upgradeOf(`GET / HTTP/1.0\r\n${fields}\r\n`), undefined);
  assert.equal(upgradeOf(`POST / HTTP/1.1\r\n${fields}Content-Length: 1\r\n\r\nx`), undefined);
  assert.equal(upgradeOf(`POST / HTTP/1.1\r\n${fields}Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n`), undefined);
});

test("HTTP/1.0, where it is accepted, closes unless it asks otherwise", () => {
  const old = (fields: string): string => `GET / HTTP/1.0\r\nHost: a\r\n${fields}\r\n`;
  const read = (input: string): boolean => readRequests([Buffer.from(input)], { acceptHttp10: true }).closed;
  assert.equal(read(old("")), true);
  assert.equal(read(old("Connection: keep-alive\r\n")), false);
});

test("100-continue is answered before the body and taken off", () => {
  const { requests, written } = readRequests([
    Buffer.from(post("Expect: 100-continue\r\nContent-Length: 2\r\n", "")),
    Buffer.from("hi"),
  ]);
  assert.deepEqual(requests, [request({ method: "POST", headers: ["content-length", "2"], body: "hi" })]);
  assert.match(written, /^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 200 OK\r\n/);
});

/** A connection whose requests are all answered in one way. */
function answering(
  fake: FakeSocket,
  clock: ManualClock | RoundClock,
  answer: (sender: ResponseSender) => void,
  delayedCloseMs = 1000,
) {
  const ignore = (): void => undefined;
  return new Http1ServerConnection(
    fake.socket,
    {
      newStream: (sender) => ({
        onRequestHead: () => answer(sender),
        onRequestData: ignore,
        onRequestTrailers: ignore,
        onDownstreamReset: ignore,
        onRequestError: ignore,
        onResponseWritten: () => undefined,
        onDownstreamDrained: ignore,
      }),
      onConnectionError: ignore,
      onStreamEnd: ignore,
      onConnectionIdle: ignore,
      onConnectionClosed: ignore,
    },
    { ...defaultServerSettings, delayedCloseMs },
    new DataPath({ logging: new Logging({ level: "off" }), clock }),
  );
}

test("a connection that closes waits for a client that takes something, and for no other", () => {
  const clock = new ManualClock();
  const fake = new FakeSocket();
  const big = Buffer.alloc(50_000, 97);
  const connection = answering(fake, clock, (sender) => {
    sender.sendResponseHead({ status: 200, headers: new HeaderMap(["content-length", "100000"]) }, false);
    sender.sendResponseData(big, false);
    sender.sendResponseData(big, true);
  });
  fake.blocked = true;
  connection.onData(Buffer.from(get("Connection: close\r\n")));
  clock.advance(9000);
  fake.pending!();
  clock.advance(9000);
  assert.deepEqual([fake.ended, fake.destroyed], [false, false]);
  clock.advance(12_000);
  assert.equal(fake.destroyed, true);
});

for (const { delayedCloseMs, openMs, goneMs } of [
  { delayedCloseMs: 0, openMs: undefined, goneMs: 0 },
  { delayedCloseMs: 200, openMs: 190, goneMs: 216 },
  { delayedCloseMs: 30_000, openMs: 29_900, goneMs: 30_016 },
]) {
  test(`a connection that closes waits for its client's end: ${delayedCloseMs} ms`, () => {
    const clock = new ManualClock();
    const fake = new FakeSocket();
    const connection = answering(
      fake,
      clock,
      (sender) => sender.sendResponseHead({ status: 204, headers: new HeaderMap(), upgrade: undefined }, true),
      delayedCloseMs,
    );
    connection.onData(Buffer.from(get("Connection: close\r\n")));
    assert.equal(fake.ended, true);
    if (openMs !== undefined) {
      clock.advance(openMs);
      assert.equal(fake.destroyed, false);
    }
    clock.advance(goneMs - (openMs ?? 0));
    assert.equal(fake.destroyed, true);
  });
}

for (const { name, end } of [
  { name: "its client's end", end: (fake: FakeSocket) => void fake.emit("end") },
  { name: "our own", end: (_: FakeSocket, connection: Http1ServerConnection) => connection.destroy() },
]) {
  test(`an answer leaves before the connection goes by ${name} in the same round of the event loop`, () => {
    const fake = new FakeSocket();
    const connection = answering(fake, new RoundClock(), (sender) =>
      sender.sendResponseHead({ status: 204, headers: new HeaderMap(), upgrade: undefined }, true),
    );
    connection.onData(Buffer.from(get("")));
    assert.equal(fake.written, "");
    end(fake, connection);
    assert.match(fake.written, /^HTTP\/1\.1 204 /);
    assert.equal(fake.destroyed, true);
  });
}
