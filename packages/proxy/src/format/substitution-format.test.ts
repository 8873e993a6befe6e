// Format strings against what Envoy's documentation and Envoy 1.40 print for the same request.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Place, Problems } from "../fields/problems.ts";
import { Host } from "../cluster/cluster.ts";
import { requestHead, streamInfo } from "../testing/from-configuration.ts";
import { HeaderMap } from "../http/header-map.ts";
import { responseFlags } from "../http/response-flags.ts";
import { compileJsonFormat, compileTextFormat } from "./substitution-format.ts";

const environment = { environment: { REGION: "north" }, hostname: "machine" };

const request = requestHead({
  method: "POST",
  authority: "shop.example:80",
  path: "/b?q=1&r=a%20b",
  headers: { "x-envoy-original-path": "/a?q=1", "user-agent": "curl", "x-empty": "" },
});
const response = { status: 503, headers: new HeaderMap(["x-envoy-upstream-service-time", "12"]) };
const info = streamInfo(request);
info.response = response;
info.responseCode = 503;
info.responseFlags = responseFlags.UF.bit | responseFlags.URX.bit;
info.responseCodeDetails = "upstream reset";
info.bytesReceived = 3;
info.bytesSent = 4;
info.durationMs = 12.9;
info.attemptCount = 2;
info.upstreamHost = new Host({ type: "ip", ip: "10.0.0.1", port: 3000 }, "", 1, { istio: { workload: "w" } }, true);
info.upstreamLocalAddress = "[::1]:40000";
info.route = {
  name: "default",
  metadata: { a: { b: [1] } },
  virtualHostMetadata: { tulle: { revision: "a1" } },
  perFilterConfig: new Map(),
};
info.dynamicMetadata = { ns: { key: "v", deep: { er: 1 } } };

for (const { format, expected } of [
  { format: "plain 100%%", expected: "plain 100%" },
  {
    format: "%REQ(:METHOD)% %REQ(:path)% %REQ(:AUTHORITY)% %REQ(:SCHEME)%",
    expected: "POST /b?q=1&r=a%20b shop.example:80 http",
  },
  { format: "%REQ(X-ENVOY-ORIGINAL-PATH?:PATH)%", expected: "/a?q=1" },
  { format: "%REQ(X-ABSENT?:PATH)%", expected: "/b?q=1&r=a%20b" },
  { format: "%REQ(X-ABSENT)%|%REQ(X-EMPTY)%|", expected: "-||" },
  { format: "%REQ(USER-AGENT):2%", expected: "cu" },
  { format: "%REQ_WITHOUT_QUERY(X-ENVOY-ORIGINAL-PATH?:PATH)%", expected: "/a" },
  { format: "%QUERY_PARAM(r)% %QUERY_PARAM(none)%", expected: "a b -" },
  { format: "%RESP(X-ENVOY-UPSTREAM-SERVICE-TIME)% %RESP(:STATUS)%", expected: "12 503" },
  { format: "%START_TIME%", expected: "2026-11-20T12:00:00.007Z" },
  { format: "%START_TIME(%Y/%m/%d %H:%M:%S.%3f %z)%", expected: "2026/11/20 12:00:00.007 +0000" },
  { format: "%START_TIME(%s.%6f)%", expected: "1795176000.007000" },
  { format: "%PROTOCOL% %RESPONSE_CODE% %RESPONSE_FLAGS%", expected: "HTTP/1.1 503 URX,UF" },
  { format: "%RESPONSE_CODE_DETAILS% %CONNECTION_TERMINATION_DETAILS%", expected: "upstream_reset -" },
  { format: "%BYTES_RECEIVED% %BYTES_SENT% %DURATION%", expected: "3 4 12" },
  { format: "%UPSTREAM_HOST% %UPSTREAM_CLUSTER% %UPSTREAM_CLUSTER_RAW%", expected: "10.0.0.1:3000 - -" },
  {
    format: "%UPSTREAM_LOCAL_ADDRESS% %UPSTREAM_LOCAL_ADDRESS_WITHOUT_PORT% %UPSTREAM_LOCAL_PORT%",
    expected: "[::1]:40000 ::1 40000",
  },
  {
    format: "%DOWNSTREAM_REMOTE_ADDRESS% %DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT%",
    expected: "127.0.0.9:4711 127.0.0.9",
  },
  { format: "%DOWNSTREAM_LOCAL_PORT%", expected: "8080" },
  { format: "%ROUTE_NAME% %REQUESTED_SERVER_NAME% %HOSTNAME%", expected: "default - machine" },
  { format: "%ENVIRONMENT(REGION)% %ENVIRONMENT(NONE)%", expected: "north -" },
  {
    format: "%DYNAMIC_METADATA(ns:key)% %DYNAMIC_METADATA(ns:deep)% %DYNAMIC_METADATA(no:key)%",
    expected: 'v {"er":1} -',
  },
  { format: "%METADATA(ROUTE:a:b)% %METADATA(UPSTREAM_HOST:istio:workload)%", expected: "[1] w" },
  { format: "%METADATA(VIRTUAL_HOST:tulle:revision)%", expected: "a1" },
  { format: "%DOWNSTREAM_PEER_URI_SAN% %DOWNSTREAM_TLS_VERSION% %TRACE_ID%", expected: "- - -" },
  {
    format: "%RESPONSE_FLAGS_LONG%",
    expected: "UpstreamRetryLimitExceeded,UpstreamConnectionFailure",
  },
  { format: "%UPSTREAM_REQUEST_ATTEMPT_COUNT%", expected: "2" },
]) {
  test(`format ${format}`, () => {
    const problems = new Problems();
    const compiled = compileTextFormat(format, "-", environment, Place.root, problems);
    assert.deepEqual(problems.list, []);
    assert.equal(compiled(info, request, response), expected);
  });
}

for (const { name, head, expected } of [
  { name: "bytes that were no request", head: undefined, expected: "- - - HTTP/1.1" },
  { name: "an empty Host", head: { ...requestHead({ authority: "" }), hasHost: true }, expected: "GET /  HTTP/1.1" },
  { name: "no Host", head: { ...requestHead({ authority: "" }), hasHost: false }, expected: "GET / - HTTP/1.1" },
]) {
  test(`request of ${name}`, () => {
    const format = "%REQ(:METHOD)% %REQ(:PATH)% %REQ(:AUTHORITY)% %PROTOCOL%";
    const compiled = compileTextFormat(format, "-", environment, Place.root, new Problems());
    const stream = streamInfo(head);
    if (head === undefined) stream.connectionProtocol = "HTTP/1.1";
    assert.equal(compiled(stream, head, undefined), expected);
  });
}

for (const { format, expected } of [
  { format: "%NO_SUCH%", expected: "Not supported field in StreamInfo: NO_SUCH" },
  { format: "%REQ(A", expected: "Incorrect configuration: '%REQ(A'. Couldn't find valid command at position 0" },
  { format: "50% off", expected: "Incorrect configuration: '50% off'. Couldn't find valid command at position 2" },
  { format: "%REQ()%", expected: "%REQ%: needs (NAME) or (NAME?OTHER)" },
  { format: "%REQ(a?b?c)%", expected: "%REQ%: needs (NAME) or (NAME?OTHER)" },
  { format: "%PROTOCOL(x)%", expected: "%PROTOCOL%: takes no argument" },
  { format: "%START_TIME(%Q)%", expected: "%START_TIME%: unknown time specifier %Q" },
  {
    format: "%METADATA(NOWHERE:a)%",
    expected:
      "%METADATA%: knows DYNAMIC, ROUTE, VIRTUAL_HOST, CLUSTER, UPSTREAM_HOST, LISTENER, LISTENER_FILTER_CHAIN, not 'NOWHERE'",
  },
]) {
  test(`refused: ${format}`, () => {
    const problems = new Problems();
    compileTextFormat(format, "-", environment, Place.root, problems);
    assert.deepEqual(
      problems.list.map((problem) => problem.message),
      [expected],
    );
  });
}

test("what an Envoy alone can evaluate has no value, and is told", () => {
  const problems = new Problems();
  const format = "%CEL(response.flags):3% %TYPED_CEL(response.code * 2)% %CEL(response.code == 503 || bogus)%";
  const compiled = compileTextFormat(format, "-", environment, Place.root, problems);
  assert.equal(compiled(info, request, response), "- - true");
  assert.deepEqual(
    problems.list.map(({ severity, message }) => `${severity}: ${message}`),
    [
      "warning: 'response.flags' cannot be evaluated as a whole: the attribute response.flags is not supported",
      "warning: 'response.code * 2' cannot be evaluated as a whole: the operator * is not supported",
      "warning: 'response.code == 503 || bogus' cannot be evaluated as a whole: the attribute bogus is not supported",
    ],
  );
});

test("no flags are a value, a connection without one has no protocol", () => {
  const connection = streamInfo(undefined);
  connection.isConnection = true;
  connection.accessLogType = "NotSet";
  const format = {
    flags: "%RESPONSE_FLAGS%",
    long: "%RESPONSE_FLAGS_LONG%",
    protocol: "%PROTOCOL%",
    type: "%ACCESS_LOG_TYPE%",
  };
  const compiled = compileJsonFormat(format, true, environment, Place.root, new Problems());
  const parsed = (): unknown => JSON.parse(compiled(connection, undefined, undefined));
  assert.deepEqual(parsed(), { flags: "-", long: "-", type: "NotSet" });
  connection.connectionProtocol = "HTTP/1.1";
  assert.deepEqual(parsed(), { flags: "-", long: "-", protocol: "HTTP/1.1", type: "NotSet" });
});

for (const { name, omitEmpty, expected } of [
  {
    name: "missing is null",
    omitEmpty: false,
    expected: { a: { x: 503 }, list: ["POST", null], text: "POST -", none: null },
  },
  { name: "missing is left out", omitEmpty: true, expected: { a: { x: 503 }, list: ["POST", null], text: "POST " } },
]) {
  test(`JSON: ${name}`, () => {
    const problems = new Problems();
    const format = {
      text: "%REQ(:METHOD)% %REQ(X-ABSENT)%",
      none: "%REQ(X-ABSENT)%",
      a: { x: "%RESPONSE_CODE%" },
      list: ["%REQ(:METHOD)%", "%REQ(X-ABSENT)%"],
    };
    const line = compileJsonFormat(format, omitEmpty, environment, Place.root, problems)(info, request, response);
    assert.deepEqual(problems.list, []);
    assert.equal(line.endsWith("\n"), true);
    assert.deepEqual(JSON.parse(line), expected);
    assert.deepEqual(Object.keys(JSON.parse(line) as object), Object.keys(expected).sort());
  });
}

test("no word of a stranger's begins a line of its own, in text or in JSON", () => {
  const hostile = 'a"\r\n[2026] "GET /forged" 200\u0000\u001b[31m';
  const stream = streamInfo(request);
  stream.dynamicMetadata = { of: { claim: hostile, deep: { [hostile]: hostile } } };
  stream.upstreamTransportFailureReason = hostile;
  const query = `/?q=${encodeURIComponent(hostile)}`;
  const head = { ...request, path: query };
  const operators = [
    "%DYNAMIC_METADATA(of:claim)%",
    "%DYNAMIC_METADATA(of)%",
    "%METADATA(DYNAMIC:of:claim)%",
    "%CEL(metadata.filter_metadata['of']['claim'])%",
    "%TYPED_CEL(metadata.filter_metadata['of']['claim'])%",
    "%UPSTREAM_TRANSPORT_FAILURE_REASON%",
    "%QUERY_PARAM(q)%",
    "%QUERY_PARAMS%",
    "%PATH%",
  ];
  for (const operator of operators) {
    const problems = new Problems();
    const text = compileTextFormat(operator, "-", environment, Place.root, problems);
    const json = compileJsonFormat(
      { value: operator, text: `<${operator}>` },
      false,
      environment,
      Place.root,
      problems,
    );
    assert.deepEqual(problems.list, []);
    const line = text(stream, head, undefined);
    assert.ok(line.length > 3, operator);
    // eslint-disable-next-line no-control-regex -- that is what must not be there
    assert.doesNotMatch(line, /[\u0000-\u001f\u007f]/, operator);
    const written = json(stream, head, undefined);
    assert.equal(written.indexOf("\n"), written.length - 1, operator);
    assert.deepEqual(Object.keys(JSON.parse(written) as object), ["text", "value"], operator);
  }
});
