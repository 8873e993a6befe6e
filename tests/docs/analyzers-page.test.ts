// docs/analyzers.md against the table of codes and the source: every code that is reported stands there as reported,
// with its name and severity, and nothing else does.
import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { analyzers, findingCodes } from "@tulle/config";

const root = path.resolve(import.meta.dirname, "../..");
const read = (file: string): string => readFileSync(path.join(root, file), "utf8");
const rows = read("docs/analyzers.md")
  .split("\n")
  .filter((line) => /^\| (IST|TUL)\d/.test(line))
  .map((line) => line.split("|").map((cell) => cell.trim()))
  .map(([, code = "", name = "", severity = "", ...others]) => ({
    code,
    name,
    severity,
    state: code.startsWith("TUL") ? "yes" : (others[0] ?? ""),
    text: others.at(-2) ?? "",
  }));
const known = new Map<string, { readonly name: string; readonly severity: string }>(Object.entries(findingCodes));

test("each code stands on the page once, in order", () => {
  const codes = rows.map(({ code }) => code);
  assert.deepEqual(codes, [...new Set(codes)].sort());
});

test("what the page calls reported is the table of codes, with its names and severities", () => {
  const reported = rows.filter(({ state }) => state === "yes");
  assert.deepEqual(
    reported.map(({ code, name, severity }) => ({ code, name, severity })),
    [...known].map(([code, { name, severity }]) => ({ code, name, severity })),
  );
});

test("what the page calls not reported has a state, and a reason where it cannot happen", () => {
  for (const { code, state, text } of rows) {
    assert.ok(["yes", "other code", "none", "missing"].includes(state), `${code}: ${state}`);
    if (state === "none" || state === "other code") assert.notEqual(text, "", `${code} has no reason`);
    for (const [, other] of text.matchAll(/`((?:IST|TUL)\d{4})`/g)) assert.ok(known.has(other!), `${code}: ${other}`);
  }
});

test("every code is reported somewhere, and every analyzer's codes are on the page", () => {
  const source = globSync("packages/{config,control-plane}/src/**/*.ts", { cwd: root })
    .filter((file) => !file.endsWith(".test.ts") && !file.endsWith("/finding.ts"))
    .map(read)
    .join("\n");
  assert.deepEqual(
    [...known.keys()].filter((code) => !source.includes(`"${code}"`)),
    [],
  );
  const reported = new Set(rows.filter(({ state }) => state === "yes").map(({ code }) => code));
  assert.deepEqual(
    analyzers.flatMap(({ codes }) => codes).filter((code) => !reported.has(code)),
    [],
  );
});
