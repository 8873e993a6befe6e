// A resource that would spoil a route table is set aside, and its last good version goes on.
import assert from "node:assert/strict";
import { test } from "node:test";
import { MemoryStore, type VirtualService } from "@tulle/config";
import { AcceptedResources } from "./accepted-resources.ts";

function virtualService(name: string, weights: readonly number[]): VirtualService {
  return {
    apiVersion: "networking.tulle.io/v1",
    kind: "VirtualService",
    metadata: { name, namespace: "shop" },
    spec: { hosts: [name], http: [{ route: weights.map((weight) => ({ destination: { host: "catalog" }, weight })) }] },
  };
}

const tooHeavy = [2_147_483_647, 2_147_483_647, 2_147_483_647];

test("a bad resource without a good version is left out, its neighbours stay", async () => {
  const store = new MemoryStore();
  await store.applyAll([virtualService("good", [1]), virtualService("bad", tooHeavy)]);
  const accepted = new AcceptedResources(store);
  accepted.refresh();
  assert.deepEqual(
    accepted.list("VirtualService").map(({ metadata }) => metadata.name),
    ["good"],
  );
  const [finding, ...others] = accepted.findings;
  assert.deepEqual(others, []);
  assert.equal(finding?.path, "spec.http[0].route");
  assert.match(finding?.message ?? "", /add up to 6442450941/);
});

test("the last good version stays in place of a bad one, until a good one comes", async () => {
  const store = new MemoryStore();
  const accepted = new AcceptedResources(store);
  const weights = (): unknown =>
    accepted.list("VirtualService").map(({ spec }) => spec.http?.[0]?.route?.map(({ weight }) => weight));
  for (const [applied, expected] of [
    [[1], [[1]]],
    [tooHeavy, [[1]]],
    [tooHeavy.with(0, 1_073_741_824), [[1]]],
    [[7], [[7]]],
  ]) {
    await store.apply(virtualService("catalog", applied as number[]));
    accepted.refresh();
    assert.deepEqual(weights(), expected);
  }
  assert.deepEqual(accepted.findings, []);
  await store.delete({ kind: "VirtualService", namespace: "shop", name: "catalog" });
  accepted.refresh();
  assert.deepEqual(weights(), []);
});

test("a regular expression that no proxy would compile sets its resource aside", async () => {
  const resource = (regex: string): VirtualService => ({
    ...virtualService("catalog", [1]),
    spec: {
      hosts: ["catalog"],
      http: [{ match: [{ uri: { regex } }], route: [{ destination: { host: "catalog" } }] }],
    },
  });
  for (const { regex, expected } of [
    { regex: "/items/[0-9]+", expected: undefined },
    { regex: "/[^/]{1,1000}", expected: undefined },
    { regex: "/[a-z]{1000}".repeat(5), expected: "spec.http[0].match[0].uri.regex" },
  ]) {
    const store = new MemoryStore();
    await store.apply(resource(regex));
    const accepted = new AcceptedResources(store);
    accepted.refresh();
    assert.equal(accepted.findings[0]?.path, expected, regex);
  }
});
