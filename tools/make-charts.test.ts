// charts/ is what the functions make now.
import assert from "node:assert/strict";
import { lstatSync, readdirSync, readFileSync, readlinkSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { chartFiles } from "@tulle/kubernetes/charts";

const folder = path.resolve(import.meta.dirname, "../charts");

test("charts/ is current: npm run generate:charts", () => {
  const { texts, links } = chartFiles();
  const there = readdirSync(folder, { recursive: true, encoding: "utf8" });
  const linked = [...links.keys()].map((file) => `${file}/`);
  const files = there.filter(
    (file) => lstatSync(path.join(folder, file)).isFile() && !linked.some((link) => file.startsWith(link)),
  );
  assert.deepEqual(files.sort(), [...texts.keys()].sort());
  for (const [file, text] of texts) assert.equal(readFileSync(path.join(folder, file), "utf8"), text, file);
  for (const [file, target] of links) assert.equal(readlinkSync(path.join(folder, file)), target);
});
