// The look-up by path against the plain walk: on random routes and requests both find the same route.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { RouteConfigurationSchema } from "@tulle/xds/envoy/config/route/v3/route_pb";
import { accepted, fromConfiguration, requestHead } from "../testing/from-configuration.ts";
import { compileRouteConfiguration } from "./compile-route-configuration.ts";
import { detachedScope } from "../fields/compile-scope.ts";

const path = fc
  .array(fc.constantFrom("a", "b", "ab", ""), { minLength: 1, maxLength: 3 })
  .map((segments) => `/${segments.join("/")}`);
const match = fc.oneof(
  path.map((text) => ({ path: text })),
  path.map((text) => ({ prefix: text })),
  path.map((text) => ({ path: text, case_sensitive: false })),
  path.filter((text) => !text.endsWith("/")).map((text) => ({ path_separated_prefix: text })),
  path.map((text) => ({ safe_regex: { regex: `${text}.?` } })),
);

/** The same routes in a table short enough to be walked: one table a route. */
function walk(matches: readonly object[], target: string): number {
  return matches.findIndex((one) => tableOf([one]).match(requestHead({ path: target }), () => 0) !== undefined);
}

function tableOf(matches: readonly object[]) {
  const routes = matches.map((one, index) => ({ match: one, name: String(index), route: { cluster: "c" } }));
  const json = { name: "r", virtual_hosts: [{ name: "v", domains: ["*"], routes }] };
  return accepted(compileRouteConfiguration(fromConfiguration(RouteConfigurationSchema, json), detachedScope()));
}

test("a long list finds what a walk finds", () => {
  const lists = fc.array(match, { minLength: 17, maxLength: 24 });
  const targets = fc.array(fc.tuple(path, fc.constantFrom("", "?q", "#f", "?/a")), { minLength: 3, maxLength: 6 });
  fc.assert(
    fc.property(lists, targets, (matches, requests) => {
      const table = tableOf(matches);
      for (const [bare, query] of requests) {
        const found = table.match(requestHead({ path: bare + query }), () => 0);
        assert.equal(found === undefined ? -1 : Number(found.route.name), walk(matches, bare + query));
      }
    }),
    { numRuns: 60, seed: 20_261_120 },
  );
});
