// docs/injection.md against the table of annotations: each has a row that says whether it takes effect.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { podAnnotations } from "@tulle/kubernetes";

const page = readFileSync(path.resolve(import.meta.dirname, "../../docs/injection.md"), "utf8");
const section = page.slice(page.indexOf("## Every annotation"), page.indexOf("## Templates"));
const rows = new Map(
  [...section.matchAll(/^\| `([^`]+)` \| ?(.*?) ?\|$/gm)].map(([, name, text]) => [name!, text!] as const),
);

test("each annotation has a row, and each row is one of them", () => {
  assert.deepEqual([...rows.keys()].sort(), Object.keys(podAnnotations).sort());
});

for (const [name, use] of Object.entries(podAnnotations)) {
  test(`the row of ${name} says that it is ${use}`, () => {
    const text = rows.get(name) ?? "";
    assert.equal(text.startsWith("no effect, a warning"), use === "ignored", text);
    assert.equal(text.startsWith("written"), use === "written", text);
  });
}
