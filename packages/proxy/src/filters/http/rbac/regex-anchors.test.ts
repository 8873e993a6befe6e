// What is read out of a pattern, and that every text which it matches has it.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { requestHead, streamInfo } from "../../../testing/from-configuration.ts";
import type { Anchor, TextSource } from "./condition.ts";
import { regexAnchorSets } from "./regex-anchors.ts";

const source = (text: string): TextSource => ({ key: "s", read: () => text });
const describe = (anchor: Anchor): string =>
  anchor.kind === "ipv4" ? "ipv4" : `${anchor.source.key} ${anchor.kind} ${anchor.text}`;

const rows: readonly { readonly pattern: string; readonly expected: readonly string[] }[] = [
  { pattern: ".*/ns/shop/.*", expected: ["s/ns exact shop"] },
  {
    pattern: "spiffe://.*/ns/shop/sa/web",
    expected: ["s prefix spiffe://", "s suffix /ns/shop/sa/web", "s/ns exact shop"],
  },
  { pattern: ".*/sa/web", expected: ["s suffix /sa/web"] },
  { pattern: "/api/[^/]+/items", expected: ["s prefix /api/", "s suffix /items"] },
  { pattern: "a\\.test", expected: ["s exact a.test"] },
  {
    pattern: "spiffe://.+/ns/shop/(.+/|)sa/webapp(/.+)?",
    expected: ["s prefix spiffe://", "s/ns exact shop"],
  },
  { pattern: "/items(/.*)?", expected: ["s prefix /items"] },
  { pattern: "a[|]b", expected: ["s prefix a"] },
  { pattern: "a[]|]b", expected: ["s prefix a"] },
  { pattern: "a(b|c)|d", expected: [] },
  { pattern: "a\\Q|\\E", expected: [] },
  { pattern: ".+", expected: [] },
  { pattern: ".*?a", expected: [] },
  { pattern: "ab?", expected: ["s prefix a"] },
  { pattern: "ab*", expected: ["s prefix a"] },
  { pattern: "a{2}", expected: [] },
  { pattern: "\\d", expected: [] },
  { pattern: "a|b", expected: [] },
  { pattern: "(?i)a", expected: [] },
  { pattern: "^a$", expected: [] },
  { pattern: "a\\", expected: ["s prefix a"] },
];

for (const { pattern, expected } of rows) {
  test(`${pattern}: ${expected.join(", ")}`, () => {
    assert.deepEqual(regexAnchorSets(source(""), pattern).flat().map(describe), expected);
  });
}

const isAt = (anchor: Anchor): boolean => {
  assert.ok(anchor.kind !== "ipv4");
  const request = requestHead();
  const values = [anchor.source.read(request, streamInfo(request)) ?? []].flat();
  return values.some((value) => {
    if (anchor.kind === "prefix") return value.startsWith(anchor.text);
    return anchor.kind === "suffix" ? value.endsWith(anchor.text) : value === anchor.text;
  });
};

test("namespaces that run into each other are all seen", () => {
  const [set] = regexAnchorSets(source("/ns/ns/a/"), ".*/ns/a/.*");
  assert.ok(set!.some(isAt));
});

const part = fc.constantFrom(
  ".*",
  ".+",
  "[^/]+",
  "[^/]*",
  "/ns/",
  "/",
  "a",
  "b",
  "\\.",
  "a?",
  "b*",
  "(a|b)",
  "(a|)",
  "(/|a)?",
  "[ab]",
  "|",
  "/ns/a/",
);

test("every text that matches is at the anchors", () => {
  fc.assert(
    fc.property(
      fc.array(part, { minLength: 1, maxLength: 6 }),
      fc.array(fc.constantFrom("/ns/", "/", "a", "b", ".", "/ns/a/", ""), { maxLength: 6 }),
      (parts, fills) => {
        const pattern = parts.join("");
        let fill = 0;
        // Gaps filled with anything, so that most texts match.
        const text = parts
          .map((one) => (/^[/a-z]+$/.test(one) ? one : one === "\\." ? "." : (fills[fill++] ?? "")))
          .join("");
        if (!new RegExp(`^(?:${pattern})$`).test(text)) return;
        for (const set of regexAnchorSets(source(text), pattern)) assert.ok(set.some(isAt), `${pattern} ${text}`);
      },
    ),
    { numRuns: 2000 },
  );
});
