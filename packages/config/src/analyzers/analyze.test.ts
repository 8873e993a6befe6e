// Each analyzer on a small mesh: what is found, and that a right mesh gives nothing. The cases lie in testing/.
import assert from "node:assert/strict";
import { test } from "node:test";
import { analyze, analyzers } from "./analyze.ts";
import { findingCodes } from "../findings/finding.ts";
import { loadText } from "../load/load.ts";
import { renderFinding } from "../findings/render-finding.ts";
import { shop } from "../testing/analyzed-mesh.ts";
import { routingCases } from "../testing/routing-cases.ts";
import { rolloutCases } from "../testing/rollout-cases.ts";
import { serviceEntryCases } from "../testing/service-entry-cases.ts";
import { telemetryCases } from "../testing/telemetry-cases.ts";
import { workloadCases } from "../testing/workload-cases.ts";
import { securityCases } from "../testing/security-cases.ts";

const cases = [
  ...routingCases,
  ...serviceEntryCases,
  ...workloadCases,
  ...securityCases,
  ...telemetryCases,
  ...rolloutCases,
];

for (const { name, input, options, expected } of cases) {
  test(`analyze: ${name}`, () => {
    const { resources, findings } = loadText(shop + input, "mesh.yaml");
    assert.deepEqual(
      findings.filter(({ code }) => code !== "TUL0001"),
      [],
    );
    const found = analyze(resources, options);
    const texts = found.map(({ place, path, message, ...rest }) => {
      assert.equal(place?.file, "mesh.yaml");
      return renderFinding({ ...rest, message: `${path}: ${message}` });
    });
    // Where dates stand in a text, an expression says what matters.
    const wanted = expected.map((each, index) =>
      typeof each === "string" || each.test(texts[index] ?? "") ? each : "",
    );
    assert.deepEqual(
      texts,
      wanted.map((each, index) => (typeof each === "string" ? each : texts[index])),
    );
  });
}

test("analyze: a finding points to the line of the field", () => {
  const { resources } = loadText(
    "apiVersion: networking.tulle.io/v1\nkind: VirtualService\nmetadata:\n  name: a\nspec:\n  hosts:\n    - a\n  http:\n    - route:\n        - destination:\n            host: nowhere\n",
    "rules/02.yaml",
  );
  const [finding] = analyze(resources);
  assert.deepEqual(finding, {
    code: "IST0101",
    severity: "error",
    message: 'host "nowhere" not found',
    resource: { kind: "VirtualService", namespace: "default", name: "a" },
    path: "spec.http[0].route[0].destination.host",
    place: { file: "rules/02.yaml", line: 11, column: 13 },
    suggestion: 'Add a Service "nowhere" to the namespace "default", or write the full name of a service elsewhere.',
  });
});

test("analyze: every analyzer's codes are known and are found in a case above", () => {
  const tested = cases.flatMap(({ expected }) => expected.map(String).join("\n")).join("\n");
  for (const { name, codes } of analyzers) {
    for (const code of codes) {
      assert.ok(Object.hasOwn(findingCodes, code), `${name}: ${code}`);
      assert.ok(tested.includes(code), `${name}: no case finds ${code}`);
    }
  }
});
