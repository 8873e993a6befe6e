// docs/istio-api.md says of each field of Istio's API what the schemas say. UPDATE_DOCS=1 writes its tables anew; read
// the difference before it is committed.
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { istioApiTables } from "./istio-api-page.ts";

const page = path.resolve(import.meta.dirname, "../../docs/istio-api.md");
const begin = "<!-- made from the schemas: UPDATE_DOCS=1 node --test tests/docs/istio-api-page.test.ts -->\n";

test("the page of Istio's API says what the schemas say", () => {
  const text = readFileSync(page, "utf8");
  const at = text.indexOf(begin);
  assert.ok(at > 0, `the marker ${begin} is missing`);
  const expected = `${text.slice(0, at)}${begin}\n${istioApiTables()}\n`;
  if (process.env["UPDATE_DOCS"] === "1") writeFileSync(page, expected);
  assert.equal(readFileSync(page, "utf8"), expected, "UPDATE_DOCS=1 writes the tables anew");
});
