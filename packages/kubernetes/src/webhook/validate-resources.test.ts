// What is refused of a resource, and what is only said.
import assert from "node:assert/strict";
import { test } from "node:test";
import { analyze, type MeshResource } from "@tulle/config";
import { MetricRegistry } from "@tulle/telemetry";
import { validateResources } from "./validate-resources.ts";

const metrics = new MetricRegistry();
const validate = validateResources({
  metrics,
  store: { all: (): readonly MeshResource[] => [] },
  check: ({ metadata }) =>
    metadata.name === "spoils" ? [{ code: "IST0106", severity: "error", message: "it would spoil the table" }] : [],
  analyze: (resources) => analyze(resources),
});

const route = (spec: object, name = "a"): Readonly<Record<string, unknown>> => ({
  apiVersion: "networking.tulle.io/v1",
  kind: "VirtualService",
  metadata: { name, namespace: "shop" },
  spec,
});
const good = { hosts: ["catalog"], http: [{ route: [{ destination: { host: "catalog" } }] }] };
const bad = { hosts: ["catalog"], http: [{ route: [{ destination: { host: "catalog" }, weight: -1 }] }] };
const asked = { uid: "u", operation: "CREATE", namespace: "shop", name: "a", oldObject: undefined };

test("what the object shows by itself is refused, with its place", () => {
  const { refusal = "" } = validate({ ...asked, object: route(bad) });
  assert.match(refusal, /^\[IST0106\] .*spec\.http\[0\]\.route\[0\]\.weight/);
  assert.match(validate({ ...asked, object: route(good, "spoils") }).refusal ?? "", /spoil the table/);
});

test("what was taken and what was refused is counted by Istio's names, in the mesh's own words", () => {
  const counted = (name: string): number => {
    const line = [...metrics.pieces()]
      .join("")
      .split("\n")
      .find((each) => each.startsWith(`${name}{`) && each.includes("virtualservices"));
    return Number(line?.split(" ").at(-1) ?? 0);
  };
  const before = [counted("galley_validation_passed"), counted("galley_validation_failed")];
  validate({ ...asked, object: route(good) });
  validate({ ...asked, object: route(bad) });
  validate({ ...asked, object: { ...route(good), kind: "Whatever" } });
  const now = [counted("galley_validation_passed"), counted("galley_validation_failed")];
  assert.deepEqual(now, [before[0]! + 1, before[1]! + 1]);
  assert.doesNotMatch([...metrics.pieces()].join(""), /Whatever/);
});

test("what depends on others is a warning", () => {
  const { refusal, warnings = [] } = validate({ ...asked, object: route(good) });
  assert.equal(refusal, undefined);
  assert.match(warnings.join("\n"), /\[IST0101\] .*catalog/);
});

test("an update that leaves the spec as it was is let through, whatever is wrong with it", () => {
  const before = route(bad);
  const { refusal, warnings = [] } = validate({ ...asked, operation: "UPDATE", object: before, oldObject: before });
  assert.equal(refusal, undefined);
  assert.match(warnings.join("\n"), /weight/);
  const changed = route({ ...bad, hosts: ["other"] });
  assert.ok(validate({ ...asked, operation: "UPDATE", object: changed, oldObject: before }).refusal);
});

test("analyzing takes a tenth of the time, whoever asks how often", () => {
  let nowMs = 0;
  let analyses = 0;
  const ask = validateResources({
    metrics: new MetricRegistry(),
    store: { all: (): readonly MeshResource[] => [] },
    check: () => [],
    analyze: (resources) => {
      nowMs += 500;
      analyses += 1;
      return analyze(resources);
    },
    elapsedMs: () => nowMs,
  });
  for (let count = 0; count < 100; count += 1) ask({ ...asked, object: route(good) });
  assert.equal(analyses, 4);
  assert.match(ask({ ...asked, object: route(bad) }).refusal ?? "", /weight/);
  nowMs += 4000;
  const { warnings = [] } = ask({ ...asked, object: route(good) });
  assert.match(warnings.join("\n"), /\[IST0101\] .*catalog/);
  ask({ ...asked, object: route(good) });
  assert.equal(analyses, 5);
});
