// Expressions that are refused when they come. What the others come to is compared with Envoy in
// local-replies-parity.test.ts.
import assert from "node:assert/strict";
import { test } from "node:test";
import { compileExpression } from "./compile-expression.ts";

const refused: readonly { readonly expression: string; readonly reason: RegExp }[] = [
  { expression: "", reason: /position 0: the end/ },
  { expression: "response.code ==", reason: /position 16: the end/ },
  { expression: "response.code == 403 403", reason: /position 21: 403/ },
  { expression: "(response.code == 403", reason: /the end/ },
  { expression: "response.code = 403", reason: /cannot be read at position 13/ },
  { expression: "response.code + 1 == 404", reason: /cannot be read at position 13/ },
  { expression: "response.code == 403 ? true : false", reason: /cannot be read at position 20/ },
  { expression: "response.code == 'a", reason: /cannot be read at position 16/ },
  { expression: String.raw`'\q' == 'a'`, reason: /escape \\q/ },
  { expression: "response.code in", reason: /the end/ },
  { expression: "- true", reason: /position 2: true/ },
  { expression: "request.bogus == 'a'", reason: /^the attribute request\.bogus is not supported$/ },
  { expression: "bogus && connection.mtls", reason: /attribute bogus .*; the attribute connection\.mtls / },
  { expression: "request.method.a == 'a'", reason: /the attribute request\.method\.a / },
  { expression: "constructor['a'] == 'a'", reason: /the attribute constructor / },
  { expression: "__proto__ == 'a'", reason: /the attribute __proto__ / },
  { expression: "request.path.valueOf('a')", reason: /the function valueOf / },
  { expression: "size(request.path) > 3", reason: /^the function size is not supported in this form$/ },
  { expression: "request.path.matches('a')", reason: /the function matches / },
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
