// What is an expression of CEL and what is none, as cel-go, by which Istio checks them, and cel-cpp, Envoy's, say.
import assert from "node:assert/strict";
import { test } from "node:test";
import { type CelTree, parseExpression } from "./parse-expression.ts";

const name = (text: string): CelTree => ({ type: "name", name: text });
const literal = (value: string | number): CelTree => ({ type: "literal", value });

const trees: readonly { readonly text: string; readonly tree: CelTree }[] = [
  { text: String.raw`"\x41\u00e9\U0001F600\101\n\"" // why`, tree: literal('Aé😀A\n"') },
  { text: String.raw`r'\n'`, tree: literal(String.raw`\n`) },
  { text: `'''a'b\n"'''`, tree: literal(`a'b\n"`) },
  { text: "b'a'", tree: { type: "bytes", value: "a" } },
  { text: "- -3", tree: literal(3) },
  { text: "0xFu", tree: literal(15) },
  { text: "1.5e3", tree: literal(1500) },
  {
    text: "a + b * c - d",
    tree: {
      type: "binary",
      operator: "-",
      left: {
        type: "binary",
        operator: "+",
        left: name("a"),
        right: { type: "binary", operator: "*", left: name("b"), right: name("c") },
      },
      right: name("d"),
    },
  },
  {
    text: "a ? b : c ? d : 'e'",
    tree: {
      type: "conditional",
      condition: name("a"),
      whenTrue: name("b"),
      whenFalse: { type: "conditional", condition: name("c"), whenTrue: name("d"), whenFalse: literal("e") },
    },
  },
  { text: "{'a': 1,}", tree: { type: "map", entries: [{ key: literal("a"), value: literal(1) }] } },
  {
    text: "a.b{c: 1}",
    tree: {
      type: "message",
      of: { type: "select", of: name("a"), field: "b" },
      entries: [{ key: "c", value: literal(1) }],
    },
  },
];

for (const { text, tree } of trees) {
  test(`the tree of ${text}`, () => {
    assert.deepEqual(parseExpression(text), { ok: true, tree });
  });
}

const expressions: readonly string[] = [
  "response.code >= 400",
  "response.code >= 400 || (connection.mtls && request.url_path.contains('v1beta3'))",
  "has(request.headers['x-a'].b) ? request.headers['x-a'] : 'none'",
  "request.headers.exists(name, name.startsWith('x-')) && !true",
  "string(destination.port) + '/' + string(response.code % 100)",
  ".a.b == [1, 2,] && 'x' in {} && a.in_ == a.if",
  "timestamp('2020-01-01T00:00:00Z') < request.time - duration('1h')",
];

for (const text of expressions) {
  test(`an expression: ${text}`, () => {
    assert.equal(parseExpression(text).ok, true);
  });
}

const refused: readonly { readonly text: string; readonly reason: RegExp }[] = [
  { text: "", reason: /position 0: the end/ },
  { text: "a ==", reason: /position 4: the end/ },
  { text: "a = b", reason: /read at position 2/ },
  { text: "a ? b", reason: /position 5: the end/ },
  { text: "a b", reason: /position 2: b/ },
  { text: "f(a,)", reason: /position 4: \)/ },
  { text: "{1}", reason: /position 2: }/ },
  { text: "if == 1", reason: /position 0: if/ },
  { text: "a.true", reason: /position 2: true/ },
  { text: "'a", reason: /read at position 0/ },
  { text: "'a\nb'", reason: /read at position 0/ },
  { text: String.raw`'\q'`, reason: /escape \\q/ },
  { text: String.raw`'\UFFFFFFFF'`, reason: /escape \\UFFFFFFFF/ },
  { text: "has(a)", reason: /the function has/ },
  { text: `${"(".repeat(100)}a${")".repeat(100)}`, reason: /more than 64 levels/ },
  { text: "a ? b : ".repeat(100), reason: /more than 64 levels/ },
  { text: `a${" || a".repeat(2000)}`, reason: /longer than 2048/ },
];

for (const { text, reason } of refused) {
  test(`no expression: ${text.slice(0, 30)}`, () => {
    const parsed = parseExpression(text);
    assert.equal(parsed.ok, false);
    assert.match(parsed.ok ? "" : parsed.reason, reason);
  });
}
