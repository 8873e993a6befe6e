// Calls that the routing rules of `mesh/routing.yaml` steer: the same at the gateway and at the sidecar's outbound
// listener.
import {
  type Call,
  type Expected,
  http1Alone,
  http2Alone,
  type Row,
  rows,
  rowsToHttp2,
  type Versions,
} from "./call.ts";

const refusedDetails =
  "upstream_reset_before_response_started{remote_connection_failure|delayed_connect_error:_Connection_refused}";
const closedDetails = "upstream_reset_before_response_started{connection_termination}";
const brokenDetails = "upstream_reset_before_response_started{protocol_error}";
const cutDetails = "upstream_reset_after_response_started{protocol_error}";

const closed: Expected = { status: 503, flags: "UC", details: closedDetails };
const closedAlways: Expected = { status: 503, flags: "URX,UC", details: closedDetails };
const broken: Expected = { status: 502, flags: "UPE", details: brokenDetails };
const cut: Expected = { status: 200, flags: "UPE", details: cutDetails, truncated: true };

const fromHttp1Alone: Versions = { toHttp2: "an application of HTTP/2 says nothing of the kind" };
const unasked: Versions = { toHttp2: "no application is asked" };
const closing: Versions = { toHttp2: "a connection of HTTP/2 is not one call's to end" };
const ofConnections = http1Alone("HTTP/2 has no fields of a connection");
const malformed = http1Alone("malformed over HTTP/2");
const absoluteForm = http1Alone("HTTP/2 has no absolute form");
const beforeHttp2 = (reset: string): string => `upstream_reset_before_response_started{${reset}}`;

const ok = (route: string, version: string): Expected => ({ status: 200, route, version });

/** Paths that the route takes. */
function taken(route: string, ...paths: readonly string[]): readonly Row[] {
  return paths.map((path): Row => [`${path} is for ${route}`, path, {}, ok(route, "v2")]);
}

/** Paths that no condition takes. */
function left(...paths: readonly string[]): readonly Row[] {
  return paths.map((path): Row => [`${path} is for no condition`, path, {}, ok("rest", "v1")]);
}

/** The path with each of the headers. */
function withEach(
  path: string,
  expected: Expected,
  ...headers: readonly Readonly<Record<string, string>>[]
): readonly Row[] {
  return headers.map((each): Row => [`${path} with ${JSON.stringify(each)}`, path, { headers: each }, expected]);
}

const matching: readonly Row[] = [
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
  ["uri is case-sensitive", "/EXACT", {}, ok("rest", "v1")],
  ["dot segments are resolved", "/prefix/../exact", {}, { ...ok("uri-exact", "v2"), receivedPath: "/exact" }],
  ["encoded dot segments", "/prefix/%2e%2e/exact", {}, { ...ok("uri-exact", "v2"), receivedPath: "/exact" }],
  ["an unreserved character that is encoded", "/e%78act", {}, { ...ok("uri-exact", "v2"), receivedPath: "/exact" }],
  [
    "a reserved character that is encoded stays",
    "/v1/%3b%2C",
    {},
    { ...ok("only-v1", "v1"), receivedPath: "/v1/%3b%2C" },
  ],
  ["an escape that is none", "/v1/%zz%", {}, { ...ok("only-v1", "v1"), receivedPath: "/v1/%zz%" }],
  ["unusual characters", "/v1/a;b=1!*'()$&+,:@[]", {}, ok("only-v1", "v1")],
  [
    "characters that no path has",
    '/v1/{a}|^`<>"',
    {},
    { ...ok("only-v1", "v1"), receivedPath: "/v1/%7Ba%7D%7C%5E%60%3C%3E%22" },
  ],
  ["a backslash", "/prefix\\..\\exact", {}, { ...ok("uri-exact", "v2"), receivedPath: "/exact" }],
  ["a query stays as it is", "/v1?%78=/../{}|", {}, { ...ok("only-v1", "v1"), receivedPath: "/v1?%78=/../{}|" }],
  ["doubled slashes stay", "//exact", {}, { ...ok("rest", "v1"), receivedPath: "//exact" }],
  ["an encoded slash stays", "/v1%2fa", {}, { ...ok("only-v1", "v1"), receivedPath: "/v1%2fa" }],
  ["method", "/any", { method: "DELETE" }, ok("method", "v2")],
  ["authority", "/any", { host: "echo.example.com" }, ok("authority", "v2")],
  ["weights 0 and 100", "/weighted", {}, ok("weighted-all", "v2")],
  ...taken("query", "/asks/query?a=b&c&d=xy&e=12", "/asks/query?e=1&d=x&c=&a=b&a=z"),
  ...left("/asks/query", "/asks/query?a=b&d=x&e=1", "/asks/query?a=bb&c&d=x&e=1", "/asks/query?a=b&c&d=x&e=1a"),
  ...left(
    "/asks/query?A=b&c&d=x&e=1",
    "/asks/query?a=z&a=b&c&d=x&e=1",
    "/asks/query?a=b&c&d=%78&e=1",
    "/asks/query?a=%62&c&d=x&e=1",
  ),
  ...taken("without", "/asks/without"),
  ...withEach("/asks/without", ok("without", "v2"), { "x-b": "bb" }, { "x-c": "xc" }, { "x-d": "e" }),
  ...withEach("/asks/without", ok("without", "v2"), { "x-b": "" }, { "x-d": "" }),
  ...withEach("/asks/without", ok("rest", "v1"), { "x-any": "" }, { "x-star": "a" }, { "x-b": "b" }),
  ...withEach("/asks/without", ok("rest", "v1"), { "x-c": "cd" }, { "x-d": "dd" }),
  // A header that is not there counts as an empty one, where a value is asked for.
  ...left("/asks/absent"),
  ...withEach("/asks/absent", ok("without-empty", "v2"), { "x-e": "f" }),
  ...taken("any-case", "/asks/case", "/ASKS/CASE/a", "/Asks/Case"),
  ...taken("any-case-exact", "/asks/exact", "/ASKS/Exact?a"),
  ...left("/ASKS/exactly"),
  ...taken("any-case-regex", "/asks/regex1"),
  ...left("/asks/REGEX1"),
  ...taken("scheme-http", "/asks/scheme"),
  ...left("/asks/secure"),
  [
    "the scheme that a client of HTTP/2 names",
    "/asks/secure",
    { headers: { ":scheme": "https" } },
    ok("scheme-https", "v2"),
    http2Alone,
  ],
  ...taken("port", "/asks/port"),
  ...left("/asks/other-port"),
  ...taken("anywhere", "/asks/anywhere"),
  ...left("/asks/nowhere"),
  ...taken("client", "/asks/client"),
  ...left("/asks/other-client", "/asks/no-client"),
  ["POST with a body", "/v1", { method: "POST", body: "hello" }, ok("only-v1", "v1")],
  ["POST with a chunked body", "/v1", { method: "POST", body: ["abc"] }, ok("only-v1", "v1")],
  ["HEAD", "/v1", { method: "HEAD" }, { status: 200, route: "only-v1" }],
];

const retries: readonly Row[] = [
  ["no endpoints", "/no-endpoints", {}, { status: 503, flags: "UH", details: "no_healthy_upstream" }, unasked],
  [
    "a subset without endpoints",
    "/empty-subset",
    {},
    { status: 503, flags: "UH", details: "no_healthy_upstream" },
    unasked,
  ],
  [
    "refused connection",
    "/refused-without-retries",
    {},
    { status: 503, flags: "UF", details: refusedDetails },
    unasked,
  ],
  [
    "refused connection, retried",
    "/refused-with-retries",
    {},
    { status: 503, flags: "URX,UF", details: refusedDetails },
    unasked,
  ],
  ["5xx retried until it succeeds", "/retried~fail-first?times=2&key=%KEY%", {}, { status: 200, attempts: 3 }],
  ["5xx retried three times", "/retried~status?code=500", {}, { status: 500, flags: "URX", attempts: 4 }],
  [
    "5xx retried with its body",
    "/retried~fail-first?times=1&key=%KEY%",
    { method: "POST", body: "again" },
    { status: 200, attempts: 2, bodyIncludes: '"body":"again"' },
  ],
  ["retried on a closed connection", "/retried~close", {}, closedAlways, closing],
  [
    "retried on a reset connection",
    "/retried~reset",
    {},
    closedAlways,
    { toHttp2: { flags: "URX,UR", details: beforeHttp2("remote_reset") } },
  ],
  ["4xx is no 5xx", "/retried~status?code=404", {}, { status: 404, attempts: 1 }],
  ["gateway-error", "/gateway-error~fail-first?times=1&code=502&key=%KEY%", {}, { status: 200, attempts: 2 }],
  ["gateway-error leaves 500 alone", "/gateway-error~status?code=500", {}, { status: 500, attempts: 1 }],
  ["retriable-4xx", "/conflict~fail-first?times=1&code=409&key=%KEY%", {}, { status: 200, attempts: 2 }],
  ["retriable-4xx leaves 404 alone", "/conflict~status?code=404", {}, { status: 404, attempts: 1 }],
  ["retriable status code", "/codes~fail-first?times=1&code=418&key=%KEY%", {}, { status: 200, attempts: 2 }],
  ["reset is retried", "/resets~close", {}, closedAlways, closing],
  ["not retried", "/once~status?code=503", {}, { status: 503, attempts: 1 }],
  ["not retried by default", "/v1~status?code=500", {}, { status: 500, attempts: 1 }],
  ["503 is retried by default", "/v1~fail-first?times=1&code=503&key=%KEY%", {}, { status: 503, attempts: 1 }],
  ["closed before the answer", "/once~close", {}, closed, closing],
  [
    "reset before the answer",
    "/once~reset",
    {},
    closed,
    { toHttp2: { flags: "UR", details: beforeHttp2("remote_reset") } },
  ],
  ["per-try time-out", "/per-try~hang", {}, { status: 504, flags: "URX,UT", details: "upstream_per_try_timeout" }],
  ["route time-out", "/timeout~hang", {}, { status: 504, flags: "UT", details: "response_timeout" }],
  [
    "route time-out within the body",
    "/long-timeout~hang-in-body",
    {},
    { status: 200, flags: "UT", truncated: true, details: "response_timeout" },
  ],
];

const answers: readonly Row[] = [
  ["4xx passes", "/once~status?code=404", {}, { status: 404 }],
  ["an unusual status passes", "/once~status?code=299", {}, { status: 299 }],
  ["204", "/once~no-content", {}, { status: 204 }],
  ["304", "/once~not-modified", {}, { status: 304, headers: { etag: '"a"' } }],
  ["chunked answer", "/once~chunked", {}, { status: 200, bodyIncludes: "one two" }],
  [
    "chunked answer to who takes trailers",
    "/once~chunked",
    { headers: { te: "trailers" } },
    { status: 200, bodyIncludes: "one two" },
  ],
  [
    "answer that ends with its connection",
    "/once~until-close",
    {},
    { status: 200, bodyIncludes: "until the end" },
    fromHttp1Alone,
  ],
  ["an HTTP/1.0 answer", "/once~http10", {}, { status: 200, bodyIncludes: "ten" }, fromHttp1Alone],
  ["repeated headers stay apart", "/once~repeated-headers", {}, { status: 200 }],
  ["headers that only proxies set", "/once~internal-headers", {}, { status: 200 }],
  ["1 MiB", "/once~large", {}, { status: 200 }],
  ["1 MiB in chunks", "/once~large-chunked", {}, { status: 200 }],
  ["1 MiB sent", "/once~", { method: "POST", body: "x".repeat(1024 * 1024) }, { status: 200 }],
  [
    "1 MiB sent in chunks",
    "/once~",
    { method: "POST", body: Array.from({ length: 16 }, () => "x".repeat(0x10000)) },
    { status: 200 },
  ],
  [
    "trailers of a request",
    "/once~",
    { method: "POST", headers: { trailer: "x-sum" }, body: ["abc"], trailers: { "x-sum": "3" } },
    { status: 200 },
  ],
  ["a truncated answer", "/once~truncate", {}, cut],
  [
    "a truncated chunked answer",
    "/once~truncate-chunked",
    {},
    cut,
    { toHttp2: { flags: "UR", details: "upstream_reset_after_response_started{remote_reset}" } },
  ],
  ["not HTTP at all", "/once~garbage", {}, broken, fromHttp1Alone],
  ["NUL in a header of an answer", "/once~nul-in-header", {}, broken, fromHttp1Alone],
  ["a space in a header name of an answer", "/once~space-in-name", {}, broken, fromHttp1Alone],
  ["an answer with two lengths", "/once~two-lengths", {}, broken, fromHttp1Alone],
  ["an answer with a length and chunks", "/once~length-and-chunked", {}, broken, fromHttp1Alone],
  ["an answer with a bad length", "/once~bad-length", {}, broken, fromHttp1Alone],
  ["an answer with a bad chunk", "/once~bad-chunk", {}, cut, fromHttp1Alone],
  ["an answer with a head of 70 KiB", "/once~long-head?kib=70", {}, { status: 200 }, fromHttp1Alone],
  ["an answer with a head of 90 KiB", "/once~long-head?kib=90", {}, broken, fromHttp1Alone],
];

const requestHeaders: readonly Row[] = [
  [
    "hop-by-hop headers go",
    "/once~",
    { headers: { connection: "close, x-gone", "x-gone": "1" } },
    { status: 200 },
    ofConnections,
  ],
  [
    "keep-alive and proxy-connection",
    "/once~",
    { headers: { "keep-alive": "5", "proxy-connection": "x" } },
    { status: 200 },
    ofConnections,
  ],
  ["TE is kept for trailers alone", "/once~", { headers: { te: "gzip, trailers" } }, { status: 200 }, malformed],
  ["a request id of the client", "/once~", { headers: { "x-request-id": "mine" } }, { status: 200 }],
  ["forwarded-for of the client", "/once~", { headers: { "x-forwarded-for": "203.0.113.7, %FROM%" } }, { status: 200 }],
  ["forwarded-proto of the client", "/once~", { headers: { "x-forwarded-proto": "https" } }, { status: 200 }],
  ["an empty value", "/once~", { headers: { "x-empty": "" } }, { status: 200 }],
  ["a value with bytes above 127", "/once~", { headers: { "x-latin": "caf\xe9" } }, { status: 200 }],
  ["blanks around a value", "/once~", { headers: { "x-blanks": " \t a b \t" } }, { status: 200 }, malformed],
  [
    "a client certificate header",
    "/once~",
    { headers: { "x-forwarded-client-cert": "By=spiffe://a" } },
    { status: 200 },
  ],
  [
    "an upgrade to HTTP/2 is passed over",
    "/once~",
    { headers: { connection: "close, upgrade", upgrade: "h2c" } },
    { status: 200 },
    ofConnections,
  ],
  [
    "an upgrade that nobody configured",
    "/once~",
    { headers: { connection: "upgrade", upgrade: "other" } },
    { status: 403, details: "upgrade_failed" },
    ofConnections,
  ],
];

const ofApplications: readonly Row[] = [...retries, ...answers, ...requestHeaders];

export const steered: readonly Row[] = [...matching, ...ofApplications];

const second = "second.example.com";

const gatewayRows: readonly Row[] = [
  ["a second VirtualService", "/only", { host: second }, { status: 200, version: "v2", route: "" }],
  ["its unmatched path", "/other", { host: second }, { status: 404, flags: "NR", details: "route_not_found" }],
  ["unknown host", "/", { host: "unknown.example.org" }, { status: 404, flags: "NR", details: "route_not_found" }],
  ["host with a port", "/exact", { host: "a.wild.example.com:8080" }, ok("uri-exact", "v2")],
  ["host in capitals", "/exact", { host: "A.Wild.Example.Com" }, ok("uri-exact", "v2")],
  [
    "the wildcard's own domain",
    "/exact",
    { host: "wild.example.com" },
    { status: 404, flags: "NR", details: "route_not_found" },
  ],
  ["clients' x-envoy headers are removed", "/v1", { headers: { "x-envoy-max-retries": "9" } }, ok("only-v1", "v1")],
  [
    "clients' retry wishes are ignored",
    "/once~status?code=500",
    { headers: { "x-envoy-retry-on": "5xx", "x-envoy-max-retries": "2" } },
    { status: 500, attempts: 1 },
  ],
  [
    "clients' time limits are ignored",
    "/long-timeout~",
    { headers: { "x-envoy-upstream-rq-timeout-ms": "1" } },
    { status: 200, received: { "x-envoy-upstream-rq-timeout-ms": null } },
  ],
];

const outboundRows: readonly Row[] = [
  ["short name with namespace", "/exact", { host: "echo.parity" }, ok("uri-exact", "v2")],
  ["name.namespace.svc", "/exact", { host: "echo.parity.svc" }, ok("uri-exact", "v2")],
  ["full name with port", "/exact", { host: "echo.parity.svc.cluster.local:80" }, ok("uri-exact", "v2")],
  ["short name with port", "/exact", { host: "echo:80" }, ok("uri-exact", "v2")],
  ["a host of the VirtualService alone", "/exact", { host: "b.wild.example.com" }, ok("uri-exact", "v2")],
  ["a Service without rules", "/", { host: "nobody" }, { status: 503, flags: "UH", details: "no_healthy_upstream" }],
  [
    "a port that the Service has not",
    "/",
    { host: "echo:81" },
    { status: 404, flags: "NR", details: "route_not_found" },
  ],
  [
    "an unknown host passes through",
    "/once~",
    { host: "%ECHO_V2%" },
    { status: 200, version: "v2", route: "allow_any" },
  ],
  [
    "an unknown host that cannot be found",
    "/",
    { host: "nowhere.invalid" },
    { status: 503, flags: "DF", details: "dns_resolution_failure", detailsUpTo: "{" },
  ],
  ["absolute form", "http://echo/exact", { host: "other" }, ok("uri-exact", "v2"), absoluteForm],
  [
    "absolute form to an unknown host",
    "http://%ECHO_V2%/",
    { host: "echo" },
    { status: 200, version: "v2", route: "allow_any" },
    absoluteForm,
  ],
  [
    "a time limit of the application is not believed",
    "/long-timeout~",
    { headers: { "x-envoy-upstream-rq-timeout-ms": "1" } },
    { status: 200, received: { "x-envoy-upstream-rq-timeout-ms": null, "x-envoy-expected-rq-timeout-ms": "2000" } },
  ],
  [
    "nor are its retry wishes",
    "/once~status?code=500",
    { headers: { "x-envoy-retry-on": "5xx", "x-envoy-max-retries": "2" } },
    { status: 500, attempts: 1, received: { "x-envoy-retry-on": null } },
  ],
  [
    "nor another answer for a time-out",
    "/timeout~hang",
    { headers: { "x-envoy-upstream-rq-timeout-alt-response": "1" } },
    { status: 504, flags: "UT", details: "response_timeout" },
  ],
];

export const routingRows: readonly Row[] = [...steered, ...gatewayRows, ...outboundRows];

export const routingCalls: readonly Call[] = [
  ...rows("gateway", steered),
  ...rows("gateway", gatewayRows),
  ...rows("outbound", steered),
  ...rows("outbound", outboundRows),
  ...rowsToHttp2("outbound", ofApplications),
];
