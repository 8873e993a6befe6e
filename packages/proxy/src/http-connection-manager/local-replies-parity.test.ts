// The same rules for local replies on this proxy and on a stock Envoy: which answers a mapper takes, and what becomes
// of them.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { ParityListener } from "../testing/parity-bootstrap.ts";
import { type ParityCall, type ParityPair, type Seen, startParityPair } from "../testing/parity-pair.ts";

const cel = (expression: string): object => ({
  extension_filter: {
    name: "cel",
    typed_config: {
      "@type": "type.googleapis.com/envoy.extensions.access_loggers.filters.cel.v3.ExpressionFilter",
      expression,
    },
  },
});
const status = (op: string, code: number): object => ({
  status_code_filter: { comparison: { op, value: { default_value: code, runtime_key: "x" } } },
});
const rbac = {
  name: "envoy.filters.http.rbac",
  typed_config: {
    "@type": "type.googleapis.com/envoy.extensions.filters.http.rbac.v3.RBAC",
    rules: {
      action: "DENY",
      policies: {
        all: { permissions: [{ not_rule: { url_path: { path: { exact: "/let" } } } }], principals: [{ any: true }] },
      },
    },
  },
};
const replies = (name: string, local_reply_config: object): ParityListener => ({
  name,
  filters: [rbac],
  manager: { local_reply_config },
});
const text = (inline_string: string, more: object = {}): object => ({
  text_format_source: { inline_string },
  ...more,
});
const denied = status("EQ", 403);
const metadata = (match_if_key_not_found: boolean): object => ({
  metadata_filter: {
    matcher: { filter: "none", path: [{ key: "a" }], value: { string_match: { exact: "b" } } },
    match_if_key_not_found,
  },
});

const listeners: readonly ParityListener[] = [
  replies("status", { mappers: [{ filter: denied, status_code: 401 }] }),
  replies("other_status", { mappers: [{ filter: status("EQ", 404), status_code: 401 }] }),
  replies("first", {
    mappers: [
      { filter: status("GE", 500), status_code: 401 },
      { filter: denied, status_code: 402 },
      { filter: denied, status_code: 401 },
    ],
  }),
  replies("body", { mappers: [{ filter: denied, body: { inline_string: "not here: ü" } }] }),
  replies("empty_body", { mappers: [{ filter: denied, body: { inline_string: "" } }] }),
  replies("format", { body_format: text("%RESPONSE_CODE% %LOCAL_REPLY_BODY% %RESP(x-none)% ä %REQ(x-word)%") }),
  replies("format_type", {
    body_format: text("<b>%LOCAL_REPLY_BODY%</b>", { content_type: "text/html; charset=UTF-8" }),
  }),
  replies("json", {
    body_format: {
      json_format: {
        text: "ä %LOCAL_REPLY_BODY%",
        code: "%RESPONSE_CODE%",
        path: "%REQ(:path)%",
        word: "%REQ(x-word)%",
      },
    },
  }),
  replies("override", {
    mappers: [
      {
        filter: denied,
        status_code: 451,
        body: { inline_string: "own" },
        body_format_override: text("%LOCAL_REPLY_BODY%!%RESPONSE_CODE%%RESP(:status)%"),
      },
    ],
    body_format: text("general"),
  }),
  replies("headers", {
    mappers: [
      {
        filter: denied,
        headers_to_add: [
          { header: { key: "www-authenticate", value: "Basic %RESPONSE_CODE%" } },
          { header: { key: "content-type", value: "text/x" }, append_action: "OVERWRITE_IF_EXISTS_OR_ADD" },
        ],
        status_code: 401,
      },
    ],
  }),
  replies("headers_format", {
    mappers: [
      {
        filter: denied,
        headers_to_add: [{ header: { key: "www-authenticate", value: "%LOCAL_REPLY_BODY%" } }],
        body_format_override: text("%RESP(www-authenticate)%"),
      },
    ],
  }),
  replies("and", { mappers: [{ filter: { and_filter: { filters: [denied, status("LE", 404)] } }, status_code: 401 }] }),
  replies("metadata_missing", { mappers: [{ filter: metadata(false), status_code: 401 }] }),
  replies("metadata_missing_matches", { mappers: [{ filter: metadata(true), status_code: 401 }] }),
  replies("request_header", {
    mappers: [
      { filter: { header_filter: { header: { name: "x-word", string_match: { exact: "a" } } } }, status_code: 401 },
    ],
  }),
];

/** UTF-8 as node:http takes header values, a character for each byte. */
const latin1 = (value: string): string => Buffer.from(value).toString("latin1");

const calls: readonly ParityCall[] = listeners.flatMap(({ name }): readonly ParityCall[] => [
  { listener: name },
  { listener: name, path: "/let" },
  { listener: name, headers: { "x-word": "a" }, method: "POST", body: ["a", "b"] },
  { listener: name, method: "HEAD" },
  { listener: name, headers: { "x-word": latin1('ü"ß') } },
  ...["application/grpc", "application/grpc+proto", "application/grpc-web"].flatMap((type) =>
    ["POST", "HEAD"].map((method) => ({ listener: name, method, headers: { "content-type": type } })),
  ),
]);

/** Expression → whether it takes the denial of `GET /p/a?q=1#f` with `x-word: a`, twice. */
const expressions: Readonly<Record<string, boolean>> = {
  'response.code_details == "rbac_access_denied_matched_policy[all]"': true,
  "response.code_details == 'rbac_access_denied_matched_policy[none]'": false,
  "response.code == 403": true,
  "response.code != 403": false,
  "response.code >= 400 && response.code < 500": true,
  "response.code > 403 || request.method == 'GET'": true,
  "response.code in [401, 403]": true,
  "response.code in [401]": false,
  'response.code == "403"': false,
  'response.code != "403"': true,
  "!(response.code == 404)": true,
  "!!(response.code == 404)": false,
  "request.path == '/p/a?q=1'": true,
  "request.url_path.startsWith('/p/')": true,
  "request.url_path.endsWith('/a')": true,
  "request.path.contains('q=')": true,
  "request.query == 'q=1'": true,
  "request.host == 'main.test'": true,
  "request.scheme == 'http'": true,
  "request.protocol == 'HTTP/1.1'": true,
  "request.headers['x-word'] == 'a'": true,
  "request.headers['X-Word'] == 'a'": true,
  "request.headers['x-twice'] == '1,2'": true,
  "request.headers[':path'].startsWith('/p')": true,
  "request.headers.referer == 'x'": false,
  "'x-word' in request.headers": true,
  "'x-none' in request.headers": false,
  "request.headers['x-none'] == 'a'": false,
  "request.headers['x-none'] != 'a'": false,
  "request.headers['x-none'] != 'a' || response.code == 403": true,
  "response.code == 403 || request.headers['x-none'] != 'a'": true,
  "!(request.headers['x-none'] == 'a')": false,
  "has(request.referer)": false,
  "has(request.method)": true,
  "!has(request.referer)": true,
  "request.referer == 'x'": false,
  "'a' < 'b' && 'B' < 'a' && 'ab' > 'a'": true,
  "true && !false": true,
  "'text'": false,
  "1": false,
  "null == null": true,
  "request.headers != null": true,
  "'a' == request.headers": false,
  "[1, 2] == [1, 2] && 1 != 2": true,
  "[1, 2][1] == 2": true,
  "-1 < 1 && 1.5 > 1.0": true,
  '"a\\"b" == \'a"b\'': true,
  "response.code == 404 == false": true,
  "true || false && false": true,
};

const expressionListeners = Object.keys(expressions).map((expression, index) =>
  replies(`cel_${index}`, { mappers: [{ filter: cel(expression), status_code: 418 }] }),
);
const expressionCalls = expressionListeners.map(({ name: listener }): ParityCall => ({
  listener,
  path: "/p/a?q=1",
  headers: { "x-word": "a", "x-twice": ["1", "2"] },
}));

let pair: ParityPair;
let ours: readonly Seen[];
let envoys: readonly Seen[];

before(async () => {
  pair = await startParityPair([...listeners, ...expressionListeners], "none");
  ({ ours, envoys } = await pair.run([...calls, ...expressionCalls]));
});

after(() => pair.stop());

for (const [index, { listener, method = "GET", path = "/" }] of calls.entries()) {
  test(`${listener}: ${method} ${path}`, () => {
    assert.deepEqual(ours[index], envoys[index]);
  });
}

for (const [index, [expression, isTaken]] of Object.entries(expressions).entries()) {
  test(`expression ${expression}: ${isTaken}`, () => {
    const at = calls.length + index;
    assert.deepEqual([ours[at]!.status === 418, envoys[at]!.status === 418], [isTaken, isTaken]);
    assert.deepEqual(ours[at]!.overHttp2, envoys[at]!.overHttp2);
  });
}
