// What a Rollout may say, and what it means when it says nothing.
import assert from "node:assert/strict";
import { test } from "node:test";
import { loadText } from "../load/load.ts";

const manifest = (spec: string): string =>
  `apiVersion: rollouts.tulle.io/v1alpha1\nkind: Rollout\nmetadata: { name: catalog, namespace: shop }\nspec: ${spec}\n`;
const versions = "host: catalog, stable: { subset: v1 }, canary: { subset: v2 }";
const steps = (list: string, more = ""): string =>
  manifest(`{ ${versions}, strategy: { canary: { steps: [${list}] } }${more} }`);
const metric = (fields: string): string => steps(`{ analysis: { metrics: [{ name: m, ${fields} }] } }`);

test("the defaults", () => {
  const { resources, findings } = loadText(metric("successRate: {}, thresholdRange: { min: 99 }"), "rollout.yaml");
  assert.deepEqual(findings, []);
  const [rollout] = resources;
  assert.ok(rollout?.kind === "Rollout");
  assert.deepEqual(rollout.spec.strategy.canary?.steps[0]?.analysis?.metrics[0], {
    name: "m",
    successRate: {},
    thresholdRange: { min: 99 },
    interval: "30s",
    count: 1,
    failureLimit: 0,
    minRequests: 20,
  });
});

const good: readonly { readonly name: string; readonly text: string }[] = [
  {
    name: "every kind of step",
    text: steps(
      "{ setWeight: 0 }, { setWeight: 100 }, { setHeaderRoute: { match: { name: x-a, exact: b } } }, { setHeaderRoute: {} }, { pause: {} }, { pause: { duration: 1s } }",
    ),
  },
  { name: "compared with the stable version", text: metric("latency: { percentile: 95 }, stableTolerance: 20") },
  {
    name: "a Prometheus query",
    text: metric('prometheus: { address: "https://p.test/x", query: up }, thresholdRange: { max: 1 }'),
  },
  {
    name: "blue-green",
    text: manifest(`{ ${versions}, strategy: { blueGreen: { previewHeader: { name: x-preview }, keepOldFor: 10m } } }`),
  },
  {
    name: "a freeze",
    text: steps(
      "{ setWeight: 1 }",
      ', freeze: { enabled: true, timeZone: Europe/Vienna, windows: [{ days: [Fri], from: "18:00", to: "06:00" }, { start: "2026-12-24T00:00:00Z", end: "2026-12-27T00:00:00+01:00" }] }',
    ),
  },
];

for (const { name, text } of good) {
  test(`taken: ${name}`, () => {
    const { resources, findings } = loadText(text, "rollout.yaml");
    assert.deepEqual(findings, []);
    assert.equal(resources.length, 1);
  });
}

const at = "spec.strategy.canary.steps[0]";
const ofMetric = `${at}.analysis.metrics[0]`;
const refused: readonly { readonly name: string; readonly text: string; readonly expected: readonly string[] }[] = [
  {
    name: "nothing at all",
    text: manifest("{}"),
    expected: ["spec"],
  },
  { name: "no steps", text: steps(""), expected: ["spec.strategy.canary.steps"] },
  { name: "a weight that cannot be", text: steps("{ setWeight: 101 }"), expected: [`${at}.setWeight`] },
  { name: "two things in a step", text: steps("{ setWeight: 1, pause: {} }"), expected: [`${at}.pause`] },
  { name: "a metric of nothing", text: metric("thresholdRange: { min: 1 }"), expected: [ofMetric] },
  { name: "a metric that is compared with nothing", text: metric("successRate: {}"), expected: [ofMetric] },
  {
    name: "a range that nothing is in",
    text: metric("latency: {}, thresholdRange: { min: 2, max: 1 }"),
    expected: [`${ofMetric}.thresholdRange`],
  },
  {
    name: "a share of more than all",
    text: metric("successRate: {}, thresholdRange: { min: 101 }"),
    expected: [`${ofMetric}.thresholdRange`],
  },
  {
    name: "a query beside the stable version, at no address",
    text: metric('prometheus: { address: "http://p.test", query: up }, stableTolerance: 1'),
    expected: [`${ofMetric}.stableTolerance`],
  },
  {
    name: "an address that is none",
    text: metric("prometheus: { address: p, query: up }, thresholdRange: { min: 1 }"),
    expected: [`${ofMetric}.prometheus.address`],
  },
  {
    name: "looks without a pause",
    text: metric("successRate: {}, thresholdRange: { min: 1 }, interval: 10ms"),
    expected: [`${ofMetric}.interval`],
  },
  {
    name: "one version",
    text: manifest(
      "{ host: a, stable: { labels: { a: b, c: d } }, canary: { labels: { c: d, a: b } }, strategy: { blueGreen: {} } }",
    ),
    expected: ["spec.canary"],
  },
  {
    name: "versions of every pod",
    text: manifest("{ host: a, stable: { labels: {} }, canary: { subset: b }, strategy: { blueGreen: {} } }"),
    expected: ["spec.stable.labels"],
  },
  {
    name: "windows without an end, backwards, empty, and of no place",
    text: steps(
      "{ setWeight: 1 }",
      ', freeze: { timeZone: Moon, windows: [{ from: "18:00" }, { start: "2026-12-24T00:00:00Z", end: "2026-12-23T00:00:00Z" }, { from: "10:00", to: "10:00" }, { from: "25:00", to: "26:00" }] }',
    ),
    expected: [
      "spec.freeze.timeZone",
      "spec.freeze.windows[0]",
      "spec.freeze.windows[1].end",
      "spec.freeze.windows[2].to",
      "spec.freeze.windows[3].from",
      "spec.freeze.windows[3].to",
    ],
  },
];

for (const { name, text, expected } of refused) {
  test(`refused: ${name}`, () => {
    const { resources, findings } = loadText(text, "rollout.yaml");
    assert.deepEqual(resources, []);
    assert.deepEqual([...new Set(findings.map(({ path = "" }) => path))].toSorted(), expected.toSorted());
    assert.ok(findings.every(({ severity }) => severity === "error"));
  });
}
