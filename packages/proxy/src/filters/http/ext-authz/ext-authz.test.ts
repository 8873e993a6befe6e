// What of ExtAuthz is refused with its place, and the small pieces of the filter.
import assert from "node:assert/strict";
import { test } from "node:test";
import { ExtAuthzSchema } from "@tulle/xds/envoy/extensions/filters/http/ext_authz/v3/ext_authz_pb";
import { compileFilter } from "../../../testing/filter-probe.ts";
import { withParameters } from "./query-parameters.ts";

const server = { server_uri: { uri: "http://a", cluster: "a", timeout: "1s" } };

const configurations: readonly {
  readonly name: string;
  readonly json: object;
  readonly expected: readonly string[];
}[] = [
  { name: "over HTTP", json: { http_service: server }, expected: [] },
  { name: "over gRPC", json: { grpc_service: { envoy_grpc: { cluster_name: "a" } } }, expected: [] },
  { name: "nobody to ask", json: {}, expected: ["services: is required"] },
  {
    name: "no cluster",
    json: { http_service: { server_uri: { uri: "http://a", timeout: "1s" } } },
    expected: ["http_service.server_uri.cluster: value length must be at least 1 characters"],
  },
  {
    name: "Google's gRPC",
    json: { grpc_service: { google_grpc: { target_uri: "a", stat_prefix: "a" } } },
    expected: ["grpc_service.google_grpc: is not supported"],
  },
  {
    name: "paths that do not begin with a slash, and both",
    json: { http_service: { ...server, path_prefix: "a", path_override: "b" } },
    expected: [
      'http_service.path_prefix: should start with "/".',
      'http_service.path_override: should start with "/".',
      "http_service: only one of path_prefix and path_override can be set",
    ],
  },
  {
    name: "a body of no bytes",
    json: { http_service: server, with_request_body: {} },
    expected: ["with_request_body.max_request_bytes: value must be greater than 0"],
  },
  {
    name: "what is not built",
    json: { http_service: server, shadow_mode: true, encode_raw_headers: true },
    expected: ["encode_raw_headers: this field is not supported", "shadow_mode: this field is not supported"],
  },
];
for (const { name, json, expected } of configurations) {
  test(`ExtAuthz: ${name}`, () => {
    const { filter, problems } = compileFilter(ExtAuthzSchema, json);
    assert.deepEqual([...problems].sort(), [...expected].sort());
    assert.equal(filter === undefined, expected.length > 0);
  });
}

const paths = [
  { name: "nothing there", path: "/a", set: [["b", "1"]], remove: [], expected: "/a?b=1" },
  { name: "replaced", path: "/a?b=1&c=%20&b=2", set: [["b", "3"]], remove: [], expected: "/a?c=%20&b=3" },
  { name: "taken out", path: "/a?b=1&c", set: [], remove: ["b", "x"], expected: "/a?c" },
  { name: "all taken out", path: "/a?b=1", set: [], remove: ["b"], expected: "/a" },
  { name: "before a fragment", path: "/a#f", set: [["b", ""]], remove: [], expected: "/a?b=#f" },
] as const satisfies readonly {
  readonly name: string;
  readonly path: string;
  readonly set: readonly (readonly [string, string])[];
  readonly remove: readonly string[];
  readonly expected: string;
}[];
for (const { name, path, set, remove, expected } of paths) {
  test(`query parameters: ${name}`, () => assert.equal(withParameters(path, set, remove), expected));
}
