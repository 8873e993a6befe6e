// What compiled routes do to the request and to the response, and what of that comes from which level.
import assert from "node:assert/strict";
import { test } from "node:test";
import { type RequestProperties, requestHead, streamInfo } from "../testing/from-configuration.ts";
import { HeaderMap } from "../http/header-map.ts";
import { added, table, routes, to } from "../testing/route-tables.ts";

interface RequestChange {
  readonly name: string;
  readonly route: object;
  readonly host?: object;
  readonly configuration?: object;
  readonly request: RequestProperties;
  readonly expected: Readonly<Record<string, string>>;
}

const changes: readonly RequestChange[] = [
  {
    name: "prefix rewrite keeps the query and remembers the path",
    route: to("c", { prefix: "/a/" }, { prefix_rewrite: "/b/" }),
    request: { path: "/a/x?y" },
    expected: { ":path": "/b/x?y", "x-envoy-original-path": "/a/x?y" },
  },
  {
    name: "rewrite of an exact path",
    route: to("c", { path: "/a" }, { prefix_rewrite: "/b" }),
    request: { path: "/a?y" },
    expected: { ":path": "/b?y", "x-envoy-original-path": "/a?y" },
  },
  {
    name: "regex rewrite replaces every match in the path alone",
    route: to("c", { prefix: "/" }, { regex_rewrite: { pattern: { regex: "/a(\\w)" }, substitution: "/\\1$" } }),
    request: { path: "/ax/ay?/az" },
    expected: { ":path": "/x$/y$?/az", "x-envoy-original-path": "/ax/ay?/az" },
  },
  {
    name: "host rewrite remembers the host",
    route: to("c", { prefix: "/" }, { host_rewrite_literal: "new", append_x_forwarded_host: true }),
    request: { authority: "old" },
    expected: { ":authority": "new", "x-envoy-original-host": "old", "x-forwarded-host": "old" },
  },
  {
    name: "host from a header",
    route: to("c", { prefix: "/" }, { host_rewrite_header: "x-new" }),
    request: { authority: "old", headers: { "x-new": "new" } },
    expected: { ":authority": "new", "x-new": "new", "x-envoy-original-host": "old" },
  },
  {
    name: "the least specific level has the last word",
    route: { ...to("c", { prefix: "/" }), request_headers_to_add: [added("x", "route", "OVERWRITE_IF_EXISTS_OR_ADD")] },
    host: { request_headers_to_add: [added("x", "host", "OVERWRITE_IF_EXISTS_OR_ADD")] },
    configuration: { request_headers_to_add: [added("x", "table", "OVERWRITE_IF_EXISTS_OR_ADD")] },
    request: {},
    expected: { x: "table" },
  },
  {
    name: "what a peer escaped cannot end the line that it is put in",
    route: { ...to("c", { prefix: "/" }), request_headers_to_add: [added("x", "%QUERY_PARAM(q)%")] },
    request: { path: "/?q=a%0d%0aevil:%201%c4%8a" },
    expected: { x: "a  evil: 1\xc4\x8a" },
  },
  {
    name: "other characters than ASCII go out as UTF-8",
    route: {
      ...to("c", { prefix: "/" }, { prefix_rewrite: "/Ċ" }),
      request_headers_to_add: [
        added("x", "é"),
        { header: { key: "y", raw_value: Buffer.from([0x8a]).toString("base64") } },
      ],
    },
    request: { path: "/" },
    expected: { ":path": "/\xc4\x8a", x: "\xc3\xa9", y: "\x8a", "x-envoy-original-path": "/" },
  },
  {
    name: "the most specific level, when told so",
    route: { ...to("c", { prefix: "/" }), request_headers_to_add: [added("x", "route", "OVERWRITE_IF_EXISTS_OR_ADD")] },
    host: { request_headers_to_add: [added("x", "host", "OVERWRITE_IF_EXISTS_OR_ADD")] },
    configuration: { most_specific_header_mutations_wins: true },
    request: {},
    expected: { x: "route" },
  },
  {
    name: "append actions",
    route: {
      ...to("c", { prefix: "/" }),
      request_headers_to_add: [
        added("a", "2"),
        added("b", "2", "ADD_IF_ABSENT"),
        added("c", "2", "ADD_IF_ABSENT"),
        added("d", "2", "OVERWRITE_IF_EXISTS"),
        added("e", "2", "OVERWRITE_IF_EXISTS"),
      ],
    },
    request: { headers: { a: "1", b: "1", e: "1" } },
    expected: { a: "1,2", b: "1", c: "2", e: "2" },
  },
  {
    name: "removal comes before addition",
    route: {
      ...to("c", { prefix: "/" }),
      request_headers_to_add: [added("a", "new")],
      request_headers_to_remove: ["A", "gone"],
    },
    request: { headers: { a: "old", gone: "1" } },
    expected: { a: "new" },
  },
  {
    name: "formats; an empty value adds nothing",
    route: {
      ...to("c", { prefix: "/" }),
      request_headers_to_add: [
        added("x", "%REQ(:method)% %ENVIRONMENT(REGION)% 100%%"),
        added("y", "%REQ(absent)%"),
        { header: { key: "z", value: "%REQ(absent)%" }, keep_empty_value: true },
      ],
    },
    request: { method: "PUT" },
    expected: { x: "PUT north 100%", z: "" },
  },
  {
    name: "changes see the path before its rewrite",
    route: {
      ...to("c", { prefix: "/a" }, { prefix_rewrite: "/b" }),
      request_headers_to_add: [added("x", "%REQ(:path)%")],
    },
    request: { path: "/a" },
    expected: { x: "/a", ":path": "/b", "x-envoy-original-path": "/a" },
  },
  {
    name: "headers of the chosen weighted cluster",
    route: {
      match: { prefix: "/" },
      route: {
        weighted_clusters: {
          clusters: [{ name: "c", weight: 1, request_headers_to_add: [added("x", "w")], host_rewrite_literal: "w" }],
        },
      },
    },
    request: {},
    expected: { x: "w", ":authority": "w", "x-envoy-original-host": "host" },
  },
];

for (const { name, route, host, configuration, request, expected } of changes) {
  test(`request: ${name}`, () => {
    const head = requestHead(request);
    const match = table(routes([route], host, configuration)).match(head, () => 0);
    assert.ok(match?.action.type === "forward");
    match.action.finalizeRequest(head, streamInfo(head));
    const seen: Record<string, string> = {};
    for (let index = 0; index < head.headers.entries.length; index += 2) {
      const key = head.headers.entries[index]!;
      seen[key] = head.headers.getJoined(key)!;
    }
    if (head.path !== "/" || expected[":path"] !== undefined) seen[":path"] = head.path;
    if (head.authority !== "host" || expected[":authority"] !== undefined) seen[":authority"] = head.authority;
    const before = request.path === undefined ? {} : { ":path": request.path };
    const authority = request.authority === undefined ? {} : { ":authority": request.authority };
    assert.deepEqual(seen, { ...before, ...authority, ...expected });
  });
}

test("response headers of all levels", () => {
  const route = { ...to("c", { prefix: "/" }), response_headers_to_add: [added("x", "%RESPONSE_CODE%-%REQ(a)%")] };
  const match = table(routes([route], { response_headers_to_remove: ["server"] })).match(requestHead(), () => 0);
  assert.ok(match?.action.type === "forward");
  assert.equal(match.action.responseIsUntouched, false);
  const response = { status: 200, headers: new HeaderMap(["server", "s"]), upgrade: undefined };
  const info = streamInfo(requestHead({ headers: { a: "1" } }));
  info.responseCode = 200;
  match.action.finalizeResponse(response, info);
  assert.deepEqual(response.headers.entries, ["x", "200-1"]);
});

test("time-outs, retries and attempt counts come from the nearest level", () => {
  const retry_policy = {
    retry_on: "5xx, connect-failure,nonsense",
    num_retries: 3,
    per_try_timeout: "2s",
    retriable_status_codes: [409],
    retry_host_predicate: [{ name: "envoy.retry_host_predicates.previous_hosts" }],
    host_selection_retry_max_attempts: "5",
    retry_back_off: { base_interval: "0.025s" },
    retriable_headers: [{ name: "x-again", present_match: true }],
  };
  const own = to("c", { path: "/own" }, { timeout: "0s", idle_timeout: "0.5s", retry_policy: { retry_on: "reset" } });
  const newer = to("c", { path: "/new" }, { timeout: "3s", max_stream_duration: { grpc_timeout_header_max: "3s" } });
  const host = { retry_policy, include_request_attempt_count: true };
  const compiled = table(routes([own, newer, to("c", { prefix: "/" })], host));
  const ofPath = (path: string) => {
    const action = compiled.match(requestHead({ path }), () => 0)?.action;
    assert.ok(action?.type === "forward");
    return action;
  };
  const inherited = ofPath("/");
  assert.equal(inherited.timeoutMs, 15_000);
  assert.equal(inherited.includeRequestAttemptCount, true);
  const { isRetriableResponse, isRetriableRequest, ...plain } = inherited.retryPolicy!;
  assert.deepEqual(plain, {
    retryOn: 1 | 16,
    numRetries: 3,
    perTryTimeoutMs: 2000,
    perTryIdleTimeoutMs: 0,
    retriableStatusCodes: [409],
    backOffBaseMs: 25,
    backOffMaxMs: 250,
    avoidPreviousHosts: true,
    hostSelectionMaxAttempts: 5,
  });
  assert.equal(isRetriableRequest, undefined);
  const again = { status: 200, headers: new HeaderMap(["x-again", "1"]), upgrade: undefined };
  assert.equal(isRetriableResponse?.(again), true);
  assert.deepEqual([ofPath("/own").timeoutMs, ofPath("/own").idleTimeoutMs], [0, 500]);
  assert.equal(ofPath("/own").retryPolicy?.retryOn, 4);
  assert.equal(ofPath("/new").timeoutMs, 0);
});
