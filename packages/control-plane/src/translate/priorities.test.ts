// Which endpoints come first for a caller: those that are nearest, from priority 0 without a gap.
import assert from "node:assert/strict";
import { test } from "node:test";
import { translateEndpoints } from "./translate-endpoints.ts";

const endpoint = (address: string, locality?: string) => ({
  address,
  port: 80,
  labels: {},
  workload: "web",
  namespace: "shop",
  ...(locality === undefined ? {} : { locality }),
});
const endpoints = [
  endpoint("10.0.0.1", "eu/1/a"),
  endpoint("10.0.0.2", "eu/1"),
  endpoint("10.0.0.3", "eu/2"),
  endpoint("10.0.0.4", "us/1"),
  endpoint("10.0.0.5"),
];

for (const { near, among = endpoints, expected } of [
  { near: "eu/1/a", expected: { "eu/1/a": 0, "eu/1/": 1, "eu/2/": 2, "us/1/": 3, "//": 3 } },
  { near: "eu/2", expected: { "eu/2/": 0, "eu/1/a": 1, "eu/1/": 1, "us/1/": 2, "//": 2 } },
  { near: "asia/1", expected: { "eu/1/a": 0, "eu/1/": 0, "eu/2/": 0, "us/1/": 0, "//": 0 } },
  { near: undefined, expected: { "eu/1/a": 0, "eu/1/": 0, "eu/2/": 0, "us/1/": 0, "//": 0 } },
  { near: "eu/1", among: endpoints.slice(2, 4), expected: { "eu/2/": 0, "us/1/": 1 } },
]) {
  test(`of ${among.length} endpoints for a caller in ${near ?? "no place that is known"}`, () => {
    const section = { clusterName: "web", clusterId: "local", endpoints: among };
    const made = translateEndpoints(near === undefined ? section : { ...section, near });
    const found = made.endpoints.map(({ locality, priority }) => [
      `${locality?.region}/${locality?.zone}/${locality?.subZone}`,
      priority,
    ]);
    assert.deepEqual(Object.fromEntries(found), expected);
  });
}
