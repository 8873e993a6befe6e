// Whatever VirtualServices the schema lets through, alone or together: the tables that they make are ones that Tulle's
// proxy takes, or the resource was set aside with a finding.
import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { fromBinary } from "@bufbuild/protobuf";
import { type Compiled, compileListener, compileRouteConfiguration, detachedScope, problemText } from "@tulle/proxy";
import { resourceSchemas } from "@tulle/xds/resource-schemas";
import { randomVirtualServices, tablesOf } from "./random-tables.ts";
import { tries } from "../tools/tries.ts";

test("tables made of any valid resources compile", async () => {
  let total = 0;
  await fc.assert(
    fc.asyncProperty(randomVirtualServices, async (documents) => {
      const { routed, proxies } = await tablesOf(documents);
      total += routed;
      for (const { LDS, RDS } of proxies) {
        const scope = detachedScope();
        for (const { any } of LDS.values()) {
          noProblems(compileListener(fromBinary(resourceSchemas.LDS, any.value), scope));
        }
        for (const { any } of RDS.values()) {
          noProblems(compileRouteConfiguration(fromBinary(resourceSchemas.RDS, any.value), scope));
        }
      }
    }),
    { numRuns: tries({ short: 40, long: 200 }) },
  );
  assert.ok(total > tries({ short: 10, long: 100 }), `only ${total} VirtualServices were valid`);
});

function noProblems<T>(result: Compiled<T>): void {
  const problems = result.ok ? result.warnings : result.problems;
  assert.deepEqual(problems.map(problemText), []);
}
