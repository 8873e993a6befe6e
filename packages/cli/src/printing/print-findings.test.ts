// Findings as commands show them.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Finding, FindingCode } from "@tulle/config";
import { findingRows, renderFindings } from "./print-findings.ts";

const context = { isTerminal: false, env: {}, columns: 80 };
const notImplemented = (message: string): Finding => ({ code: "TUL0001", severity: "warning", message });
const page = "[TUL0001] What takes effect of Istio's API, field by field: docs/istio-api.md\n";

test("what is not implemented names the page that says what is, once", () => {
  const text = renderFindings([notImplemented("a"), notImplemented("b")], context);
  assert.equal(text, `Warning [TUL0001] a\nWarning [TUL0001] b\n${page}`);
  const told = new Set<FindingCode>();
  assert.equal(renderFindings([notImplemented("a")], context, told), `Warning [TUL0001] a\n${page}`);
  assert.equal(renderFindings([notImplemented("b")], context, told), "Warning [TUL0001] b\n");
});

test("other findings name no page", () => {
  const text = renderFindings([{ code: "IST0106", severity: "error", message: "a" }], context);
  assert.equal(text, "Error [IST0106] a\n");
});

test("programs find the page with the finding", () => {
  const other: Finding = { code: "IST0101", severity: "error", message: "b" };
  assert.deepEqual(findingRows([notImplemented("a"), other]), [
    other,
    { ...notImplemented("a"), page: "docs/istio-api.md" },
  ]);
});

test("a kind, a name or a message of a million characters is told in part", () => {
  const long = "x".repeat(1_000_000);
  const resource = { kind: long, namespace: long, name: long };
  const text = renderFindings([{ code: "TUL0003", severity: "warning", message: long, resource }], context);
  assert.ok(text.length < 10_000, String(text.length));
  assert.match(text, /x… \(1000000 characters\)/);
});

test("on a narrow terminal lines break between words, and what to do stays indented", () => {
  const finding: Finding = {
    code: "IST0101",
    severity: "error",
    message: 'host "nowhere" not found',
    resource: { kind: "VirtualService", namespace: "shop", name: "catalog" },
    place: { file: "rules/02.yaml", line: 12, column: 7 },
    suggestion: 'Did you mean "now-here", or another of its names?',
  };
  const text = renderFindings([finding], { ...context, isTerminal: true, env: { NO_COLOR: "1" }, columns: 40 });
  assert.equal(
    text,
    'Error [IST0101] (VirtualService\n  shop/catalog rules/02.yaml:12:7) host\n  "nowhere" not found\n' +
      '  Did you mean "now-here", or another of\n    its names?\n',
  );
});
