// What goes wrong in front of the proxy: clients that are slow, greedy, silent or gone, and requests that are none.
import assert from "node:assert/strict";
import { waitFor } from "../../../../../tests/tools/processes.ts";
import type { FailureClient } from "./failure-client.ts";
import { close, type FailureRow, get, lateFlag, main, post, seenClosed, upgrade, websocket } from "./failure-row.ts";

/** The kernel's buffers on both ways, which grow to 6 MB each, and the proxy's own limit. */
const unreadLimitBytes = 32 * 1024 * 1024;

/** A piece after the other, as a client does that wants to hold its place for ever. */
async function drip(client: FailureClient, piece: string, everyMs: number, over: () => Promise<void>): Promise<void> {
  const timer = setInterval(() => client.write(piece), everyMs);
  try {
    await over();
  } finally {
    clearInterval(timer);
  }
}

const clients: readonly FailureRow[] = [
  {
    name: "client: a head that never ends",
    play: async (client) => {
      client.beginHead();
      await drip(client, "a", 60, () => client.receive(/request header timeout/));
    },
    lines: ["408 - request_header_timeout"],
    counters: [main("rq_header_timeout")],
  },
  {
    name: "client: a body drop by drop",
    play: async (client) => {
      client.ask({ path: "/hang", method: "POST", fields: { "content-length": "1000000" }, isOpen: true });
      await drip(client, "x", 100, () => client.answered());
    },
    lines: ["408 - request_overall_timeout"],
    counters: [main("rq_timeout")],
  },
  {
    name: "client: a body that stops",
    play: { path: "/stream-idle/hang", method: "POST", fields: { "content-length": "10" }, body: "abc", isOpen: true },
    lines: ["408 SI stream_idle_timeout"],
    counters: [main("rq_idle_timeout")],
  },
  {
    name: "client: a body without its length that stops",
    play: { path: "/stream-duration/hang", method: "POST", body: "ab", isOpen: true },
    lines: ["408 DT max_duration_timeout"],
    counters: [main("rq_max_duration_reached")],
    envoy: { why: lateFlag, lines: ["408 - max_duration_timeout"] },
  },
  {
    name: "client: leaves before the answer",
    play: async (client, backEnd) => {
      const target = `/hang?${client.id}`;
      client.ask({ path: target });
      await waitFor(() => backEnd.seen.has(target), { what: "the request at the back end" });
      client.socket.resetAndDestroy();
      await seenClosed(backEnd, target);
    },
    lines: ["0 DC downstream_remote_disconnect"],
  },
  {
    name: "client: leaves within an endless answer",
    play: async (client, backEnd) => {
      const target = `/endless?left-${client.id}`;
      client.ask({ path: target });
      await client.receive(/x{1000}/);
      client.socket.destroy();
      await client.end();
      await seenClosed(backEnd, target);
    },
    lines: ["200 DC downstream_remote_disconnect"],
  },
  {
    name: "client: leaves a WebSocket",
    play: async (client, backEnd) => {
      const target = `/upgraded?${client.id}`;
      client.write(websocket(target));
      await client.receive(/hi$/);
      client.socket.resetAndDestroy();
      await seenClosed(backEnd, target);
    },
    lines: ["101 DC downstream_remote_disconnect"],
    http2: upgrade,
  },
  {
    name: "client: ends a WebSocket",
    play: async (client, backEnd) => {
      const target = `/upgraded?ended-${client.id}`;
      client.write(websocket(target));
      await client.receive(/hi$/);
      client.socket.end();
      await seenClosed(backEnd, target);
    },
    lines: ["101 - via_upstream"],
    envoy: { why: "an end is a disconnect", lines: ["101 DC downstream_remote_disconnect"] },
    http2: upgrade,
  },
  {
    name: "client: never reads an endless answer",
    play: async (client, backEnd) => {
      client.pause();
      const target = `/endless?unread-${client.id}`;
      client.ask({ path: `/stream-idle${target}` });
      await seenClosed(backEnd, target);
      const written = backEnd.written.get(target)!;
      assert.ok(written < unreadLimitBytes, `${written} bytes were taken for a client that reads none`);
      client.resume();
      await client.answered();
    },
    lines: ["200 SI stream_idle_timeout"],
    counters: [main("rq_idle_timeout")],
  },
  {
    name: "client: says nothing",
    listener: "idle",
    play: (client) => client.end(),
    lines: [],
    counters: ["http.idle.downstream_cx_idle_timeout"],
  },
  {
    name: "client: half open behind its answer",
    listener: "idle",
    play: async (client) => {
      client.ask({ path: "/ok", isKept: true });
      await client.end();
    },
    lines: ["200 - via_upstream"],
    counters: ["http.idle.downstream_cx_idle_timeout"],
  },
  {
    name: "client: stays for longer than connections live",
    listener: "short-lived",
    play: async (client) => {
      client.ask({ path: "/ok", isKept: true });
      await client.end();
    },
    lines: ["200 - via_upstream"],
    counters: ["http.short-lived.downstream_cx_max_duration_reached"],
  },
  {
    name: "client: says nothing for as long as connections live",
    listener: "short-lived",
    play: (client) => client.end(),
    lines: [],
    counters: ["http.short-lived.downstream_cx_max_duration_reached"],
  },
  {
    name: "client: asks more often than a connection may",
    listener: "three-requests",
    play: async (client) => {
      for (let index = 0; index < 5; index++) client.ask({ path: "/ok", isKept: true });
      await client.end();
    },
    lines: ["200 - via_upstream", "200 - via_upstream", "200 - via_upstream"],
    counters: ["http.three-requests.downstream_cx_max_requests_reached"],
    // What is under way when GOAWAY comes is served (RFC 9113 §6.8).
    http2: {
      lines: Array.from({ length: 5 }, () => "200 - via_upstream"),
      envoy: { counters: Array.from({ length: 3 }, () => "http.three-requests.downstream_cx_max_requests_reached") },
    },
  },
];

/** Requests that break the protocol. */
const requests: readonly FailureRow[] = (
  [
    ["101 fields", `GET / HTTP/1.1\r\nHost: a\r\n${"x: y\r\n".repeat(101)}\r\n`, "431 DPE http1.too_many_headers"],
    ["a field of 100 KB", get("/ok", `X: ${"y".repeat(100_000)}\r\n`), "431 DPE http1.headers_too_large"],
    ["an endless target", `GET /${"y".repeat(100_000)}`, "431 DPE http1.headers_too_large"],
    [
      "a chunk size that is none",
      post("/hang", "Transfer-Encoding: chunked\r\n", "zz\r\n"),
      "400 DPE http1.codec_error",
    ],
    [
      "a chunk size that overflows",
      post("/hang", "Transfer-Encoding: chunked\r\n", "10000000000000001\r\na\r\n0\r\n\r\n"),
      "400 DPE http1.codec_error",
    ],
    [
      "length and chunks",
      post("/ok", "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n"),
      "400 DPE http1.content_length_and_chunked_not_allowed",
    ],
    ["two lengths", post("/ok", "Content-Length: 5\r\nContent-Length: 6\r\n", "hello!"), "400 DPE http1.codec_error"],
    ["a length with a sign", post("/ok", "Content-Length: +5\r\n", "hello"), "400 DPE http1.codec_error"],
    [
      "an unknown transfer coding",
      post("/ok", "Transfer-Encoding: gzip, chunked\r\n", "0\r\n\r\n"),
      "501 DPE http1.invalid_transfer_encoding",
    ],
    ["a NUL in a value", get("/ok", "X: a\0b\r\n"), "400 DPE http1.invalid_characters"],
    ["no Host", "GET /ok HTTP/1.1\r\n\r\n", "400 - missing_host_header"],
    ["a Host that is none", "GET /ok HTTP/1.1\r\nHost: a b\r\n\r\n", "400 DPE http.invalid_authority"],
    ["a method that is none", "G@T /ok HTTP/1.1\r\nHost: a\r\n\r\n", "400 DPE http1.codec_error"],
    ["TLS to a plain port", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "400 DPE http1.codec_error"],
    [
      "CONNECT with a body",
      "CONNECT a:80 HTTP/1.1\r\nHost: a:80\r\nContent-Length: 5\r\n\r\nhello",
      "400 DPE http1.body_disallowed",
    ],
    ["CONNECT to a path", "CONNECT /ok HTTP/1.1\r\nHost: a\r\n\r\n", "400 DPE http1.invalid_url"],
    ["a scheme that is none of ours", "GET ftp://a/ok HTTP/1.1\r\nHost: a\r\n\r\n", "400 DPE http1.invalid_scheme"],
  ] as const
).map(([name, play, line]) => ({ name: `request: ${name}`, play, lines: [line] }));

/** Where Tulle reads requests more strictly. */
const strictRequests: readonly FailureRow[] = [
  {
    name: "request: a million fields",
    play: `GET / HTTP/1.1\r\nHost: a\r\n${"x: y\r\n".repeat(1_000_000)}\r\n`,
    lines: ["431 DPE http1.too_many_headers"],
    envoy: { why: "it counts fields at the end of the head", lines: ["431 DPE http1.headers_too_large"] },
  },
  {
    name: "request: an endless chunk size",
    play: post("/hang", "Transfer-Encoding: chunked\r\n", "0".repeat(100_000)),
    lines: ["400 DPE http1.codec_error"],
    envoy: {
      why: "it takes any number of zeros",
      lines: ["408 - request_overall_timeout"],
      counters: [main("rq_timeout")],
    },
  },
  {
    name: "request: a chunk extension whose quote never ends",
    play: `POST /ok HTTP/1.1\r\nHost: a\r\n${close}Transfer-Encoding: chunked\r\n\r\n0;a="\r\n\r\n`,
    lines: ["400 DPE http1.codec_error"],
    envoy: { why: "it does not read extensions", lines: ["200 - via_upstream"] },
  },
  {
    name: "request: HTTP/0.9",
    play: "GET /ok\r\n\r\n",
    lines: ["426 DPE low_version"],
    envoy: { why: "it takes the line for HTTP/1.0 without a Host", lines: ["400 - missing_host_header"] },
  },
  {
    name: "request: HTTP/1.0 with chunks",
    play: "POST /ok HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    lines: ["400 DPE http1.transfer_encoding_not_allowed"],
    envoy: { why: "it reads the chunks", lines: ["200 - via_upstream"] },
  },
  {
    name: "request: https to a plain port",
    play: `GET https://a/ok HTTP/1.1\r\nHost: a\r\n${close}\r\n`,
    lines: ["403 DPE http1.https_url_on_plaintext_connection"],
    envoy: { why: "it does not look at the scheme", lines: ["200 - via_upstream"] },
  },
  {
    name: "request: Connection names a field that frames",
    play: get("/ok", "Connection: content-length, close\r\n"),
    lines: ["400 DPE http1.connection_header_rejected"],
    envoy: { why: "it does not look", lines: ["200 - via_upstream"] },
  },
];

const targets: readonly FailureRow[] = [
  {
    name: "request: HTTP/1.0 where it is not accepted",
    listener: "strict",
    play: "GET /ok HTTP/1.0\r\nHost: a\r\n\r\n",
    lines: ["426 DPE low_version"],
  },
  { name: "request: HTTP/1.0", play: "GET /ok HTTP/1.0\r\nHost: a\r\n\r\n", lines: ["200 - via_upstream"] },
  {
    name: "request: HTTP/1.0 with keep-alive, then without",
    play: "GET /ok HTTP/1.0\r\nHost: a\r\nConnection: keep-alive\r\n\r\nGET /ok HTTP/1.0\r\nHost: a\r\n\r\n",
    lines: ["200 - via_upstream", "200 - via_upstream"],
  },
  { name: "request: HTTP/1.0 without Host", play: "GET /ok HTTP/1.0\r\n\r\n", lines: ["400 - missing_host_header"] },
  {
    name: "request: an escaped slash",
    play: { path: "/a%2fb" },
    lines: ["400 - path_normalization_failed"],
  },
  {
    name: "request: an escaped slash where it is sent back",
    listener: "redirecting",
    play: { path: "/a%2fb" },
    lines: ["307 - path_normalization_failed"],
  },
  {
    name: "request: OPTIONS *",
    play: { path: "*", method: "OPTIONS" },
    lines: ["404 - absolute_path_rejected"],
  },
];

const authorized: readonly FailureRow[] = [
  { name: "authorizer: allows", listener: "authorized", play: { path: "/ok" }, lines: ["200 - via_upstream"] },
  {
    name: "authorizer: refuses",
    listener: "authorized",
    play: { path: "/denied" },
    lines: ["403 UAEX ext_authz_denied"],
    counters: ["http.authorized.ext_authz.denied"],
  },
  {
    name: "authorizer: cannot be reached",
    listener: "unauthorized",
    play: { path: "/ok" },
    lines: ["403 UAEX ext_authz_error"],
    counters: ["http.unauthorized.ext_authz.error", "cluster.no-authorizer.upstream_cx_connect_fail"],
  },
  {
    name: "authorizer: a body that is too large for it",
    listener: "authorized",
    play: { path: "/ok", method: "POST", body: "x".repeat(20) },
    lines: ["413 - request_payload_too_large"],
    // Its last frame makes it too long (docs/differences-from-envoy.md).
    http2: { envoy: { lines: ["200 - via_upstream"] } },
  },
];

export const downstreamFailures: readonly FailureRow[] = [
  ...authorized,
  ...clients,
  ...requests,
  ...strictRequests,
  ...targets,
];
