// Every page for users opens with what its reader can do after it; the words that a newcomer may not know stand in one
// table, in order.
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";

const folder = path.join(import.meta.dirname, "../../docs");
/** For those who change the program. */
const forContributors = ["authorization-server-design.md"];
const pages = readdirSync(folder).filter((name) => name.endsWith(".md") && !forContributors.includes(name));

test("there are pages", () => assert.ok(pages.length > 10));

for (const name of pages) {
  test(`${name} opens with what can be done after it`, () => {
    const [, first] = readFileSync(path.join(folder, name), "utf8").split("\n\n");
    assert.match(first!, /^After this page you can .*\.(\s|$)/);
  });
}

test("words are in the order of the alphabet, each once", () => {
  const lines = readFileSync(path.join(folder, "glossary.md"), "utf8").split("\n");
  const words = lines.slice(lines.indexOf("|---|---|") + 1).flatMap((line) => /^\| ([^|]+) \|/.exec(line)?.[1] ?? []);
  assert.ok(words.length > 30);
  assert.deepEqual(
    words,
    [...new Set(words)].toSorted((a, b) => a.localeCompare(b, "en")),
  );
});

test("the start of it all leads to that table", () => {
  for (const file of ["../README.md", "quick-start.md"]) {
    assert.match(readFileSync(path.join(folder, file), "utf8"), /\((docs\/)?glossary\.md\)/, file);
  }
});
