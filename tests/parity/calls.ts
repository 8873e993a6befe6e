// The table of calls that Tulle's proxy and Envoy must answer alike. Each row is sent to both; both must give what the
// row expects, and what they give must be equal in status, headers, body, and access-log line.

/** Which listener of which pod takes the call. */
export type Role = "gateway" | "outbound" | "inbound";

export interface Expected {
  readonly status: number;
  /** `%RESPONSE_FLAGS%`; default `-`. */
  readonly flags?: string;
  /** `%RESPONSE_CODE_DETAILS%`; default not looked at here (both proxies must still agree). */
  readonly details?: string;
  /** `%ROUTE_NAME%`. */
  readonly route?: string;
  /** The version that the back end reports. */
  readonly version?: string;
  /** Tries that the back end, or the proxy's x-envoy-attempt-count, saw. */
  readonly attempts?: number;
  readonly bodyIncludes?: string;
  readonly interim?: readonly number[];
}

export interface Call {
  readonly name: string;
  readonly role: Role;
  readonly method: string;
  /** The request up to its end; `%AGENT%` is replaced by a user agent that finds the access-log line again. */
  readonly bytes: string;
  readonly expected: Expected;
  /** Parts in which the proxies may differ, with the reason. */
  readonly maskDetails?: string;
}

interface Shape {
  readonly method?: string;
  readonly host?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

const defaultHosts: Readonly<Record<Role, string>> = {
  gateway: "a.wild.example.com",
  outbound: "echo",
  inbound: "side",
};

/** A well-formed request that asks for the connection to end after its answer. */
function request(role: Role, path: string, shape: Shape = {}): string {
  const headers: Record<string, string> = {
    host: shape.host ?? defaultHosts[role],
    "user-agent": "%AGENT%",
    connection: "close",
    ...shape.headers,
  };
  if (shape.body !== undefined && headers["transfer-encoding"] === undefined) {
    headers["content-length"] = String(shape.body.length);
  }
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  return `${shape.method ?? "GET"} ${path} HTTP/1.1\r\n${lines.join("")}\r\n${shape.body ?? ""}`;
}

function call(role: Role, name: string, path: string, shape: Shape, expected: Expected): Call {
  return { name: `${role}: ${name}`, role, method: shape.method ?? "GET", bytes: request(role, path, shape), expected };
}

type Row = readonly [name: string, path: string, shape: Shape, expected: Expected];

const ok = (route: string, version: string): Expected => ({ status: 200, route, version, details: "via_upstream" });

/** Routing rules: the same at the gateway and at the sidecar's outbound listener. */
const routing: readonly Row[] = [
  ["header exact", "/any", { headers: { "x-dark-launch": "v2" } }, ok("header-exact", "v2")],
  ["header exact is case-sensitive", "/v1", { headers: { "x-dark-launch": "V2" } }, ok("only-v1", "v1")],
  ["header name is not case-sensitive", "/any", { headers: { "X-Dark-Launch": "v2" } }, ok("header-exact", "v2")],
  ["header prefix", "/any", { headers: { "x-group": "beta-1" } }, ok("header-prefix", "v2")],
  ["header prefix missed", "/v1", { headers: { "x-group": "alpha-1" } }, ok("only-v1", "v1")],
  ["header regex", "/any", { headers: { "x-user": "abc7" } }, ok("header-regex", "v2")],
  ["header regex matches the whole value", "/v1", { headers: { "x-user": "abc7d" } }, ok("only-v1", "v1")],
  ["two conditions, both", "/both/x", { headers: { "x-both": "yes" } }, ok("two-conditions", "v2")],
  ["two conditions, one", "/v1/both", { headers: { "x-both": "yes" } }, ok("only-v1", "v1")],
  ["either, first", "/either-a", {}, ok("either", "v2")],
  ["either, second", "/either-b", {}, ok("either", "v2")],
  ["uri exact", "/exact", {}, ok("uri-exact", "v2")],
  ["uri exact ignores the query", "/exact?a=/b", {}, ok("uri-exact", "v2")],
  ["uri prefix", "/prefixed", {}, ok("uri-prefix", "v2")],
  ["uri regex", "/items/12", {}, ok("uri-regex", "v2")],
  ["uri regex matches the whole path", "/v1/items/12", {}, ok("only-v1", "v1")],
  ["uri is case-sensitive", "/V1", { headers: { "x-dark-launch": "v2" } }, ok("header-exact", "v2")],
  ["dot segments are resolved", "/prefix/../exact", {}, ok("uri-exact", "v2")],
  ["method", "/any", { method: "DELETE" }, ok("method", "v2")],
  ["authority", "/any", { host: "echo.example.com" }, ok("authority", "v2")],
  ["weights 0 and 100", "/weighted", {}, ok("weighted-all", "v2")],
  ["POST with a body", "/v1", { method: "POST", body: "hello" }, ok("only-v1", "v1")],
  [
    "POST with a chunked body",
    "/v1",
    { method: "POST", headers: { "transfer-encoding": "chunked" }, body: "3\r\nabc\r\n0\r\n\r\n" },
    ok("only-v1", "v1"),
  ],
  ["HEAD", "/v1", { method: "HEAD" }, { status: 200, route: "only-v1" }],
  ["no endpoints", "/no-endpoints", {}, { status: 503, flags: "UH", details: "no_healthy_upstream" }],
  ["a subset without endpoints", "/empty-subset", {}, { status: 503, flags: "UH", details: "no_healthy_upstream" }],
  ["refused connection", "/refused-without-retries", {}, { status: 503, flags: "UF" }],
  ["refused connection, retried", "/refused-with-retries", {}, { status: 503, flags: "URX,UF" }],
  ["5xx retried until it succeeds", "/retried~fail-first?times=2&key=%KEY%", {}, { status: 200, attempts: 3 }],
  ["5xx retried three times", "/retried~status?code=500", {}, { status: 500, flags: "URX", attempts: 4 }],
  ["retried on a closed connection", "/retried~close", {}, { status: 503, flags: "URX,UC" }],
  ["gateway-error", "/gateway-error~fail-first?times=1&code=502&key=%KEY%", {}, { status: 200, attempts: 2 }],
  ["gateway-error leaves 500 alone", "/gateway-error~status?code=500", {}, { status: 500, attempts: 1 }],
  ["retriable-4xx", "/conflict~fail-first?times=1&code=409&key=%KEY%", {}, { status: 200, attempts: 2 }],
  ["retriable-4xx leaves 404 alone", "/conflict~status?code=404", {}, { status: 404, attempts: 1 }],
  ["retriable status code", "/codes~fail-first?times=1&code=418&key=%KEY%", {}, { status: 200, attempts: 2 }],
  ["reset is retried", "/resets~close", {}, { status: 503, flags: "URX,UC" }],
  ["not retried", "/once~status?code=503", {}, { status: 503, attempts: 1, details: "via_upstream" }],
  ["closed before the answer", "/once~close", {}, { status: 503, flags: "UC" }],
  ["reset before the answer", "/once~reset", {}, { status: 503, flags: "UC" }],
  ["not HTTP at all", "/once~garbage", {}, { status: 502, flags: "UPE" }],
  ["per-try time-out", "/per-try~hang", {}, { status: 504, flags: "URX,UT" }],
  ["route time-out", "/timeout~hang", {}, { status: 504, flags: "UT", details: "response_timeout" }],
  ["4xx passes", "/once~status?code=404", {}, { status: 404, details: "via_upstream" }],
  ["204", "/once~no-content", {}, { status: 204 }],
  ["304", "/once~not-modified", {}, { status: 304 }],
  [
    "chunked answer with trailers",
    "/once~chunked",
    { headers: { te: "trailers" } },
    { status: 200, bodyIncludes: "one two" },
  ],
  ["answer that ends with its connection", "/once~until-close", {}, { status: 200, bodyIncludes: "until the end" }],
  ["early hints", "/once~early-hints", {}, { status: 200 }],
  ["repeated headers stay apart", "/once~repeated-headers", {}, { status: 200 }],
  ["headers that only proxies set", "/once~internal-headers", {}, { status: 200 }],
];

const host = { gateway: "second.example.com", outbound: "echo.parity.svc.cluster.local:80" };

const gatewayOnly: readonly Row[] = [
  ["a second VirtualService", "/only", { host: host.gateway }, { status: 200, version: "v2" }],
  ["its unmatched path", "/other", { host: host.gateway }, { status: 404, flags: "NR", details: "route_not_found" }],
  ["unknown host", "/", { host: "unknown.example.org" }, { status: 404, flags: "NR", details: "route_not_found" }],
  ["host with a port", "/exact", { host: "a.wild.example.com:8080" }, ok("uri-exact", "v2")],
  ["host in capitals", "/exact", { host: "A.Wild.Example.Com" }, ok("uri-exact", "v2")],
  ["clients' x-envoy headers are removed", "/v1", { headers: { "x-envoy-max-retries": "9" } }, ok("only-v1", "v1")],
  [
    "clients' retry wishes are ignored",
    "/once~status?code=500",
    { headers: { "x-envoy-retry-on": "5xx", "x-envoy-max-retries": "2" } },
    { status: 500, attempts: 1 },
  ],
];

const outboundOnly: readonly Row[] = [
  ["short name with namespace", "/exact", { host: "echo.parity" }, ok("uri-exact", "v2")],
  ["name.namespace.svc", "/exact", { host: "echo.parity.svc" }, ok("uri-exact", "v2")],
  ["full name with port", "/exact", { host: host.outbound }, ok("uri-exact", "v2")],
  ["short name with port", "/exact", { host: "echo:80" }, ok("uri-exact", "v2")],
];

const inbound: readonly Row[] = [
  ["GET", "/a?b=c", {}, { status: 200, route: "default", details: "via_upstream" }],
  ["POST", "/", { method: "POST", body: "x".repeat(5000) }, { status: 200 }],
  [
    "PUT chunked",
    "/",
    { method: "PUT", headers: { "transfer-encoding": "chunked" }, body: "5\r\nhello\r\n0\r\n\r\n" },
    { status: 200 },
  ],
  ["HEAD", "/", { method: "HEAD" }, { status: 200 }],
  ["OPTIONS", "/", { method: "OPTIONS" }, { status: 200 }],
  ["any host", "/", { host: "whatever.example.org" }, { status: 200 }],
  ["500 is not retried", "/status?code=500", {}, { status: 500, details: "via_upstream" }],
  ["404 passes", "/status?code=404", {}, { status: 404 }],
  ["closed before the answer", "/close", {}, { status: 503, flags: "UC" }],
  ["204", "/no-content", {}, { status: 204 }],
  ["chunked answer", "/chunked", {}, { status: 200, bodyIncludes: "one two" }],
  ["Expect: 100-continue", "/", { method: "POST", headers: { expect: "100-continue" }, body: "late" }, { status: 200 }],
];

const malformed: readonly (readonly [name: string, bytes: string, expected: Expected])[] = [
  [
    "equal doubled Content-Length",
    "POST / HTTP/1.1\r\nhost: %HOST%\r\nuser-agent: %AGENT%\r\ncontent-length: 1\r\ncontent-length: 1\r\n\r\na",
    { status: 400, flags: "DPE" },
  ],
  [
    "different Content-Lengths",
    "POST / HTTP/1.1\r\nhost: %HOST%\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab",
    { status: 400, flags: "DPE" },
  ],
  [
    "Transfer-Encoding with Content-Length",
    "POST / HTTP/1.1\r\nhost: %HOST%\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
    { status: 400, flags: "DPE" },
  ],
  [
    "unknown transfer coding",
    "POST / HTTP/1.1\r\nhost: %HOST%\r\ntransfer-encoding: xchunked\r\n\r\n0\r\n\r\n",
    { status: 501, flags: "DPE" },
  ],
  ["space before the colon", "GET / HTTP/1.1\r\nhost : %HOST%\r\n\r\n", { status: 400, flags: "DPE" }],
  ["no Host", "GET / HTTP/1.1\r\nconnection: close\r\n\r\n", { status: 400 }],
  ["NUL in a value", "GET / HTTP/1.1\r\nhost: %HOST%\r\nx-a: b\0c\r\n\r\n", { status: 400, flags: "DPE" }],
  ["bad method", "G ET / HTTP/1.1\r\nhost: %HOST%\r\n\r\n", { status: 400, flags: "DPE" }],
  ["bad version", "GET / HTTP/7.3\r\nhost: %HOST%\r\n\r\n", { status: 400, flags: "DPE" }],
  [
    "negative Content-Length",
    "POST / HTTP/1.1\r\nhost: %HOST%\r\ncontent-length: -1\r\n\r\n",
    { status: 400, flags: "DPE" },
  ],
  ["HTTP/1.0", "GET / HTTP/1.0\r\nhost: %HOST%\r\n\r\n", { status: 426, details: "low_version" }],
  [
    "101 headers",
    `GET / HTTP/1.1\r\nhost: %HOST%\r\nconnection: close\r\n${Array.from({ length: 99 }, (_, i) => `x-${i}: ${i}\r\n`).join("")}\r\n`,
    { status: 431, flags: "DPE" },
  ],
  [
    "a head of 70 KiB",
    `GET / HTTP/1.1\r\nhost: %HOST%\r\nconnection: close\r\nx-long: ${"a".repeat(70 * 1024)}\r\n\r\n`,
    { status: 431, flags: "DPE" },
  ],
];

function malformedCalls(role: Role): Call[] {
  return malformed.map(([name, bytes, expected]) => {
    const text = bytes.replaceAll("%HOST%", defaultHosts[role]);
    return { name: `${role}: ${name}`, role, method: "GET", bytes: text, expected };
  });
}

const rows = (role: Role, table: readonly Row[]): Call[] =>
  table.map(([name, path, shape, expected]) => call(role, name, path, shape, expected));

export const calls: readonly Call[] = [
  ...rows("gateway", routing),
  ...rows("gateway", gatewayOnly),
  ...malformedCalls("gateway"),
  ...rows("outbound", routing),
  ...rows("outbound", outboundOnly),
  ...rows("inbound", inbound),
  ...malformedCalls("inbound"),
];
