// Expressions that are refused when they come. What the others come to is compared with Envoy in
// local-replies-parity.test.ts.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Cluster } from "../cluster/cluster.ts";
import { StreamInfo } from "../http/stream-info.ts";
import { requestHead } from "../testing/from-configuration.ts";
import { compileExpression } from "./compile-expression.ts";

const refused: readonly { readonly expression: string; readonly reason: RegExp }[] = [
  { expression: "", reason: /position 0: the end/ },
  { expression: "response.code ==", reason: /position 16: the end/ },
  { expression: "response.code == 403 403", reason: /position 21: 403/ },
  { expression: "(response.code == 403", reason: /the end/ },
  { expression: "response.code = 403", reason: /cannot be read at position 14/ },
  { expression: "response.code * 1 == 404", reason: /^the operator \* is not supported$/ },
  { expression: "{'a': true}['a']", reason: /^maps are not supported$/ },
  { expression: "b'a' == b'a'", reason: /^texts of bytes are not supported; / },
  { expression: "response.code == 'a", reason: /cannot be read at position 17/ },
  { expression: String.raw`'\q' == 'a'`, reason: /escape \\q/ },
  { expression: "response.code in", reason: /the end/ },
  { expression: "- true", reason: /^negative values that are no numbers are not supported$/ },
  { expression: "request.bogus == 'a'", reason: /^the attribute request\.bogus is not supported$/ },
  { expression: "bogus && connection.bogus", reason: /attribute bogus .*; the attribute connection\.bogus / },
  { expression: "request.method.a == 'a'", reason: /the attribute request\.method\.a / },
  { expression: "constructor['a'] == 'a'", reason: /the attribute constructor / },
  { expression: "__proto__ == 'a'", reason: /the attribute __proto__ / },
  { expression: "request.path.valueOf('a')", reason: /the function valueOf / },
  { expression: "size(request.path, 3)", reason: /^the function size is not supported in this form$/ },
  { expression: "request.path.matches(request.host)", reason: /the function matches / },
  { expression: "request.path.matches('(')", reason: /^the regular expression \( is none of RE2$/ },
  { expression: "request.path.startsWith()", reason: /the function startsWith / },
  { expression: "has(request)", reason: /the function has / },
  { expression: `${"(".repeat(100)}true${")".repeat(100)}`, reason: /more than 64 levels/ },
  { expression: `true${" || true".repeat(2000)}`, reason: /longer than 2048 characters/ },
];

for (const { expression, reason } of refused) {
  test(`refused: ${expression.slice(0, 40)}`, () => {
    const compiled = compileExpression(expression);
    assert.equal(compiled.ok, false);
    assert.match(compiled.ok ? "" : compiled.reason, reason);
  });
}

const values: readonly (readonly [expression: string, value: string | number | boolean | undefined])[] = [
  ["request.method == 'GET' ? 'read' : 'write'", "read"],
  ["'x-none' in request.headers ? request.headers['x-none'] : 'none'", "none"],
  ["request.headers.kind", "a"],
  ["request.host + request.url_path", "shop.example/cart"],
  ["string(response.code)", "503"],
  ["int('12') + response.code", 515],
  ["size(request.host)", 12],
  ["request.url_path.matches('^/c.*t$')", true],
  ["request.url_path.matches('x')", false],
  ["xds.cluster_metadata.filter_metadata.istio.services[0].name", "cart"],
  ["xds.cluster_metadata.filter_metadata['istio']['none']", undefined],
  ["metadata.filter_metadata['own'].tier", "gold"],
  ["destination.port", 8080],
  ["connection.mtls", false],
];

for (const [expression, expected] of values) {
  test(`${expression} is ${expected}`, () => {
    const request = requestHead({ authority: "shop.example", path: "/cart?a=b", headers: { kind: "a" } });
    const info = new StreamInfo(0, 0, "127.0.0.1:8080", "127.0.0.2:5", "");
    info.request = request;
    info.responseCode = 503;
    info.dynamicMetadata = { own: { tier: "gold" } };
    info.cluster = { metadata: { istio: { services: [{ name: "cart" }] } } } as unknown as Cluster;
    const compiled = compileExpression(expression);
    assert.ok(compiled.ok, compiled.ok ? "" : compiled.reason);
    assert.equal(compiled.value({ info, request, response: undefined }), expected);
  });
}
