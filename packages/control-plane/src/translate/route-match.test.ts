// A condition on a claim never gets lost on its way to Envoy: a route without it would hold for everybody.
import assert from "node:assert/strict";
import { test } from "node:test";
import { routeMatch } from "./route-match.ts";

for (const [name, path] of [
  ["@request.auth.claims.a.b", ["a", "b"]],
  ["@request.auth.claims[a.b]", ["a.b"]],
  ["@request.auth.claims.a\nb", ["a\nb"]],
] as const) {
  test(`${JSON.stringify(name)} is a condition, wanted or not`, () => {
    for (const [match, invert] of [
      [{ headers: { [name]: { exact: "x" } } }, false],
      [{ withoutHeaders: { [name]: { exact: "x" } } }, true],
    ] as const) {
      const { dynamicMetadata, headers } = routeMatch(match);
      assert.equal(headers.length, 0);
      assert.equal(dynamicMetadata.length, 1);
      assert.equal(dynamicMetadata[0]!.invert, invert);
      const keys = dynamicMetadata[0]!.path.map(({ segment }) => segment.value);
      assert.deepEqual(keys.slice(-path.length), path);
    }
  });
}

test("a name that leads to no claim, which parsing refuses, is no route for everybody", () => {
  assert.throws(() => routeMatch({ headers: { "@request.auth.claims": { exact: "x" } } }), /names no claim/);
});
