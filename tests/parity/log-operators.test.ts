// What the mesh's configuration takes for an operator of formats is what the proxy takes: one that only one of the two
// knew would be refused by name, or take a listener with it.
import assert from "node:assert/strict";
import fs from "node:fs";
import { test } from "node:test";
import { formatProblem, withoutSecretQueries } from "@tulle/config";
import { knownOperators, unavailableOperators } from "../../packages/proxy/src/testing/known-operators.ts";

test("the mesh's configuration knows every operator of the proxy", () => {
  assert.ok(knownOperators.length > 100, `${knownOperators.length}`);
  const unknown = knownOperators.filter((name) => formatProblem(`%${name}%`)?.includes("is no operator") === true);
  assert.deepEqual(unknown, []);
});

test("the page about logs names every operator that has no value, and why", () => {
  const page = fs.readFileSync(new URL("../../docs/access-logs.md", import.meta.url), "utf8");
  const rows = page.matchAll(/^\| (`[A-Z_0-9]+`(?:, `[A-Z_0-9]+`)*) \| ([^|]*) \|$/gm);
  const told = [...rows].flatMap(([, names, why]) => [...names!.matchAll(/[A-Z_0-9]+/g)].map(([name]) => [name, why!]));
  assert.deepEqual(Object.fromEntries(told), { ...unavailableOperators });
});

/** Of log formats for Envoy, whose own words take part in secrets of queries. */
test("a header of the request shows no secret of a query, by whatever operator", () => {
  for (const name of ["REQ", "REQUEST_HEADER", "STREAM_INFO_REQ"]) {
    assert.equal(withoutSecretQueries(`%${name}(:PATH)%`, ["token"]), "%REQ_WITHOUT_QUERY(:PATH)%", name);
  }
});
