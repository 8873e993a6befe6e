// Tables for people, and what they become on a terminal that is too narrow for them.
import assert from "node:assert/strict";
import { test } from "node:test";
import { formatFitting } from "./format-table.ts";

const wide = { columns: undefined, title: 0 };
const header = ["NAMESPACE", "NAME", "READY"];
const rows = [
  ["shop", "web-1", "yes"],
  ["tulle-system", "gateway-1", ""],
];
const table = `NAMESPACE     NAME       READY
shop          web-1      yes
tulle-system  gateway-1
`;
const paragraphs = `web-1
  NAMESPACE  shop
  READY      yes

gateway-1
  NAMESPACE
    tulle-system
`;
const titled = `NAME
  NAMESPACE     READY
web-1
  shop          yes
gateway-1
  tulle-system
`;
const cases: readonly { name: string; columns: number | undefined; expected: string }[] = [
  { name: "no terminal", columns: undefined, expected: table },
  { name: "just wide enough", columns: 30, expected: table },
  { name: "wide enough without the names", columns: 21, expected: titled },
  { name: "too narrow for both", columns: 20, expected: paragraphs },
];
for (const { name, columns, expected } of cases) {
  test(name, () => assert.equal(formatFitting(header, rows, { columns, title: 1 }), expected));
}

test("a table of nothing is its header", () =>
  assert.equal(formatFitting(header, [], wide), "NAMESPACE  NAME  READY\n"));

test("a list without rows says so in words, however narrow", () => {
  assert.equal(formatFitting(header, [], { columns: 20, title: 0, empty: "no pods" }), "no pods\n");
});

test("where a row has become a paragraph, its long values are broken between words", () => {
  const text = formatFitting(["NAME", "SUBJECT"], [["signs", "O=cluster.local, CN=Tulle root"]], {
    columns: 30,
    title: 0,
  });
  assert.equal(text, "signs\n  SUBJECT  O=cluster.local,\n           CN=Tulle root\n");
});

test("a cell holds what others wrote in it to one line and to its place", () => {
  const hostile = "curl\u001b[2J\u009b1A\u202e\u2066\nroot  admin";
  for (const columns of [undefined, 20, 8]) {
    const shown = formatFitting(["ID", "BROWSER"], [["1", hostile]], { columns, title: 0 });
    assert.doesNotMatch(shown, /[^\n\x20-\x7e]|\nroot/, String(columns));
  }
  assert.ok(
    formatFitting(["A"], [[hostile]], wide).includes(String.raw`curl\u001b[2J\u009b1A\u202e\u2066\nroot  admin`),
  );
});
