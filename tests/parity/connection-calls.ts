// Calls that are about their connection: what stands in one after the other, tunnels, and heads that are no good.
import { type Call, type RawRow, rawRows, type Role, type Row, rows, rowsToHttp2 } from "./call.ts";

export const inboundRows: readonly Row[] = [
  ["GET", "/a?b=c", {}, { status: 200, route: "default" }],
  ["POST", "/", { method: "POST", body: "x".repeat(5000) }, { status: 200 }],
  ["PUT chunked", "/", { method: "PUT", body: ["hello"] }, { status: 200 }],
  ["HEAD", "/", { method: "HEAD" }, { status: 200 }],
  ["OPTIONS", "/", { method: "OPTIONS" }, { status: 200 }],
  ["OPTIONS *", "*", { method: "OPTIONS" }, { status: 404, details: "absolute_path_rejected" }],
  ["any host", "/", { host: "whatever.example.org" }, { status: 200 }],
  ["500 is not retried", "/status?code=500", {}, { status: 500 }],
  ["404 passes", "/status?code=404", {}, { status: 404 }],
  [
    // Tulle's proxy repeats what is idempotent where its connection had waited.
    "closed before the answer",
    "/close",
    { method: "POST", body: "once" },
    { status: 503, flags: "UC", details: "upstream_reset_before_response_started{connection_termination}" },
    { toHttp2: "a connection of HTTP/2 is not one call's to end" },
  ],
  [
    "a truncated answer",
    "/truncate",
    {},
    { status: 200, flags: "UPE", details: "upstream_reset_after_response_started{protocol_error}", truncated: true },
  ],
  ["204", "/no-content", {}, { status: 204 }],
  ["chunked answer", "/chunked", {}, { status: 200, bodyIncludes: "one two" }],
  ["1 MiB", "/large", {}, { status: 200 }],
  ["1 MiB sent", "/", { method: "POST", body: "x".repeat(1024 * 1024) }, { status: 200 }],
  [
    "peer metadata stays with the proxy",
    "/",
    { headers: { "x-envoy-peer-metadata": "ChIKBE5BTUUSChoIcGVlci0x" } },
    { status: 200, received: { "x-envoy-peer-metadata": null } },
  ],
  ["dot segments are resolved", "/a/../b", {}, { status: 200, receivedPath: "/b" }],
  ["dot segments with parameters are", "/a/..;c=d/b", {}, { status: 200, receivedPath: "/b" }],
  ["a NUL in a path", "/a%00b", {}, { status: 400, details: "path_normalization_failed" }],
];

const expectContinue =
  "POST %PATH% HTTP/1.1\r\nhost: %HOST%\r\nconnection: close\r\nexpect: 100-continue\r\ncontent-length: 4\r\n\r\n";

/** On both roles that have a route for `%PATH%`. */
const sequences: readonly RawRow[] = [
  [
    "keep-alive",
    "GET %PATH%/1 HTTP/1.1\r\nhost: %HOST%\r\n\r\n",
    { status: 200, earlierStatuses: [200], receivedPath: "%PATH%/2" },
    { methods: ["GET", "GET"], afterHead: "GET %PATH%/2 HTTP/1.1\r\nhost: %HOST%\r\nconnection: close\r\n\r\n" },
  ],
  [
    "pipelining, answered in order",
    "GET %PATH%/1 HTTP/1.1\r\nhost: %HOST%\r\n\r\nHEAD %PATH%/2 HTTP/1.1\r\nhost: %HOST%\r\n\r\n" +
      "POST %PATH%/3 HTTP/1.1\r\nhost: %HOST%\r\ncontent-length: 3\r\n\r\nabc" +
      "GET %PATH%/4 HTTP/1.1\r\nhost: %HOST%\r\nconnection: close\r\n\r\n",
    { status: 200, earlierStatuses: [200, 200, 200], receivedPath: "%PATH%/4" },
    { methods: ["GET", "HEAD", "POST", "GET"] },
  ],
  [
    "pipelining, the second is malformed",
    "GET %PATH%/1 HTTP/1.1\r\nhost: %HOST%\r\n\r\nGET %PATH%/2 HTTP/1.1\r\nhost : %HOST%\r\n\r\n",
    { status: 400, earlierStatuses: [200], flags: "DPE", details: "http1.codec_error" },
    { methods: ["GET", "GET"] },
  ],
  [
    "nothing is answered behind connection: close",
    "GET %PATH%/1 HTTP/1.1\r\nhost: %HOST%\r\nconnection: close\r\n\r\nGET %PATH%/2 HTTP/1.1\r\nhost: %HOST%\r\n\r\n",
    { status: 200, receivedPath: "%PATH%/1" },
  ],
  [
    "an empty line before a request",
    "\r\nGET %PATH%/1 HTTP/1.1\r\nhost: %HOST%\r\nconnection: close\r\n\r\n",
    { status: 200 },
  ],
  ["Expect: 100-continue", expectContinue, { status: 200, interim: [100] }, { methods: ["POST"], afterHead: "late" }],
  [
    "a bad chunk size",
    "POST %PATH% HTTP/1.1\r\nhost: %HOST%\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
    { status: 400, flags: "DPE", details: "http1.codec_error" },
    { methods: ["POST"] },
  ],
  [
    "a bad chunk after the answer has begun",
    "POST %PATH%~early HTTP/1.1\r\nhost: %HOST%\r\ntransfer-encoding: chunked\r\n\r\n",
    { status: 200, flags: "DPE", details: "http1.codec_error", truncated: true },
    { methods: ["POST"], afterHead: "zz\r\n" },
  ],
  [
    "an upgrade to websocket",
    "GET %PATH% HTTP/1.1\r\nhost: %HOST%\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n",
    {
      status: 101,
      flags: "UC",
      details: "upstream_reset_after_response_started{connection_termination}",
      bodyIncludes: "ping",
    },
    { afterHead: "ping" },
  ],
];

const head = (more: string): string => `GET / HTTP/1.1\r\nhost: %HOST%\r\nconnection: close\r\n${more}\r\n`;
const refused = (status: number, details: string) => ({ status, flags: "DPE", details });

const malformed: readonly RawRow[] = [
  [
    "equal doubled Content-Length",
    "POST / HTTP/1.1\r\nhost: %HOST%\r\ncontent-length: 1\r\ncontent-length: 1\r\n\r\na",
    refused(400, "http1.codec_error"),
  ],
  [
    "different Content-Lengths",
    "POST / HTTP/1.1\r\nhost: %HOST%\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab",
    refused(400, "http1.codec_error"),
  ],
  [
    "Transfer-Encoding with Content-Length",
    "POST / HTTP/1.1\r\nhost: %HOST%\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
    refused(400, "http1.content_length_and_chunked_not_allowed"),
  ],
  [
    "unknown transfer coding",
    "POST / HTTP/1.1\r\nhost: %HOST%\r\ntransfer-encoding: xchunked\r\n\r\n0\r\n\r\n",
    refused(501, "http1.invalid_transfer_encoding"),
  ],
  [
    "two transfer codings",
    "POST / HTTP/1.1\r\nhost: %HOST%\r\ntransfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    refused(501, "http1.invalid_transfer_encoding"),
  ],
  ["space before the colon", "GET / HTTP/1.1\r\nhost : %HOST%\r\n\r\n", refused(400, "http1.codec_error")],
  ["a line without a colon", head("nothing\r\n"), refused(400, "http1.codec_error")],
  ["an empty name", head(": a\r\n"), refused(400, "http1.codec_error")],
  ["no Host", "GET / HTTP/1.1\r\nconnection: close\r\n\r\n", { status: 400, details: "missing_host_header" }],
  [
    "a Host that no host can be",
    "GET / HTTP/1.1\r\nhost: a b\r\nconnection: close\r\n\r\n",
    refused(400, "http.invalid_authority"),
  ],
  ["NUL in a value", "GET / HTTP/1.1\r\nhost: %HOST%\r\nx-a: b\0c\r\n\r\n", refused(400, "http1.invalid_characters")],
  ["bad method", "G ET / HTTP/1.1\r\nhost: %HOST%\r\n\r\n", refused(400, "http1.codec_error")],
  ["an unknown method", "BREW / HTTP/1.1\r\nhost: %HOST%\r\n\r\n", refused(400, "http1.codec_error")],
  ["a method in small letters", "get / HTTP/1.1\r\nhost: %HOST%\r\n\r\n", refused(400, "http1.codec_error")],
  ["bad version", "GET / HTTP/7.3\r\nhost: %HOST%\r\n\r\n", refused(426, "low_version")],
  ["no version", "GET /\r\n\r\n", refused(426, "low_version")],
  ["a target with a blank", "GET /a b HTTP/1.1\r\nhost: %HOST%\r\n\r\n", refused(400, "http1.codec_error")],
  ["a target that is no path", "GET a HTTP/1.1\r\nhost: %HOST%\r\n\r\n", refused(400, "http1.codec_error")],
  [
    "a target with a fragment",
    "GET /v1#a HTTP/1.1\r\nhost: %HOST%\r\nconnection: close\r\n\r\n",
    { status: 400, details: "path_normalization_failed" },
  ],
  [
    "the preface of HTTP/2 with another method",
    "PRI / HTTP/1.1\r\nhost: %HOST%\r\n\r\n",
    refused(400, "http1.codec_error"),
  ],
  [
    "negative Content-Length",
    "POST / HTTP/1.1\r\nhost: %HOST%\r\ncontent-length: -1\r\n\r\n",
    refused(400, "http1.codec_error"),
  ],
  [
    "a Content-Length with a sign",
    "POST / HTTP/1.1\r\nhost: %HOST%\r\ncontent-length: +1\r\n\r\na",
    refused(400, "http1.codec_error"),
  ],
  [
    "a Content-Length in hex",
    "POST / HTTP/1.1\r\nhost: %HOST%\r\ncontent-length: 0x1\r\n\r\na",
    refused(400, "http1.codec_error"),
  ],
  ["HTTP/1.0", "GET / HTTP/1.0\r\nhost: %HOST%\r\n\r\n", refused(426, "low_version")],
  ["100 headers", head(Array.from({ length: 98 }, (_, i) => `x-${i}: ${i}\r\n`).join("")), { status: 200 }],
  [
    "101 headers",
    head(Array.from({ length: 99 }, (_, i) => `x-${i}: ${i}\r\n`).join("")),
    refused(431, "http1.too_many_headers"),
  ],
  ["a head of 70 KiB", head(`x-long: ${"a".repeat(70 * 1024)}\r\n`), refused(431, "http1.headers_too_large")],
  ["a head of 50 KiB", head(`x-long: ${"a".repeat(50 * 1024)}\r\n`), { status: 200 }],
  ["a name with an underscore", head("x_a: 1\r\n"), { status: 200 }],
  ["a name with a control character", head("x\x01a: 1\r\n"), refused(400, "http1.invalid_characters")],
];

const emptyHost = "GET /v1 HTTP/1.1\r\nhost:\r\nconnection: close\r\n\r\n";

const connects: readonly RawRow[] = [
  [
    "CONNECT to an unknown host",
    "CONNECT %ECHO_V2% HTTP/1.1\r\nhost: %ECHO_V2%\r\n\r\n",
    { status: 200, route: "allow_any", bodyIncludes: "until the end" },
    { methods: ["CONNECT"], afterHead: "GET /until-close HTTP/1.1\r\nhost: a\r\n\r\n" },
  ],
  [
    "CONNECT to a host of the mesh",
    "CONNECT echo:80 HTTP/1.1\r\nhost: echo:80\r\n\r\n",
    { status: 404, flags: "NR", details: "route_not_found" },
    { methods: ["CONNECT"] },
  ],
  [
    "CONNECT that is refused",
    "CONNECT 127.0.0.9:9 HTTP/1.1\r\nhost: 127.0.0.9:9\r\n\r\n",
    {
      status: 503,
      flags: "UF",
      details:
        "upstream_reset_before_response_started{remote_connection_failure|delayed_connect_error:_Connection_refused}",
    },
    { methods: ["CONNECT"] },
  ],
  [
    "CONNECT to a path",
    "CONNECT /a HTTP/1.1\r\nhost: echo\r\n\r\n",
    refused(400, "http1.invalid_url"),
    { methods: ["CONNECT"] },
  ],
];

const gatewayConnects: readonly RawRow[] = [
  [
    "CONNECT",
    "CONNECT a.wild.example.com:80 HTTP/1.1\r\nhost: a.wild.example.com:80\r\n\r\n",
    { status: 404, flags: "NR", details: "route_not_found" },
    { methods: ["CONNECT"] },
  ],
];

function at(role: Role, path: string): Call[] {
  const place = (text: string): string => text.replaceAll("%PATH%", path);
  return rawRows(
    role,
    sequences.map(([name, bytes, expected, more = {}]) => [
      name,
      place(bytes),
      expected.receivedPath === undefined ? expected : { ...expected, receivedPath: place(expected.receivedPath) },
      more.afterHead === undefined ? more : { ...more, afterHead: place(more.afterHead) },
    ]),
  );
}

export const connectionCalls: readonly Call[] = [
  ...rows("inbound", inboundRows),
  ...rowsToHttp2("inbound", inboundRows),
  ...at("inbound", "/v1"),
  ...rawRows("inbound", malformed),
  ...rawRows("inbound", [["an empty Host", emptyHost, { status: 200 }]]),
  ...at("gateway", "/v1"),
  ...rawRows("gateway", malformed),
  ...rawRows("gateway", [["an empty Host", emptyHost, { status: 404, flags: "NR", details: "route_not_found" }]]),
  ...rawRows("gateway", gatewayConnects),
  ...at("outbound", "/v1"),
  ...rawRows("outbound", malformed),
  ...rawRows("outbound", connects),
];
