// What a status says of what is known, and what of it is written again.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Finding } from "@tulle/config";
import { type ObjectFacts, objectStatus, saysSame } from "./object-status.ts";

const good: ObjectFacts = {
  generation: 2,
  isRead: true,
  isShadowed: false,
  setAside: [],
  findings: [],
  refusals: [],
  sync: undefined,
  more: {},
};
const finding: Finding = { code: "IST0101", severity: "error", message: "no such host", path: "spec.http[0]" };

const rows: readonly {
  readonly name: string;
  readonly facts: Partial<ObjectFacts>;
  readonly says: readonly string[];
}[] = [
  { name: "a good one", facts: {}, says: ["Accepted True Accepted: "] },
  { name: "one with findings", facts: { findings: [finding] }, says: ["Accepted True Accepted: "] },
  {
    name: "one that cannot be read",
    facts: { isRead: false, findings: [finding] },
    says: ["Accepted False Invalid: no such host"],
  },
  {
    name: "one that is set aside",
    facts: { setAside: [finding] },
    says: ["Accepted False Invalid: no such host"],
  },
  {
    name: "a shadowed one",
    facts: { isShadowed: true, sync: { connected: 1, inSync: 1, isDone: true } },
    says: ["Accepted False Shadowed: an object of Tulle's group has the same name, and counts in its place"],
  },
  {
    name: "one that all have",
    facts: { sync: { connected: 3, inSync: 3, isDone: true } },
    says: ["Accepted True Accepted: ", "Reconciled True UpToDate: 3 of 3 proxies have it"],
  },
  {
    name: "one that some wait for",
    facts: { sync: { connected: 3, inSync: 1, isDone: false } },
    says: ["Accepted True Accepted: ", "Reconciled False Waiting: 1 of 3 proxies have it"],
  },
  {
    name: "one that a proxy refuses",
    facts: { sync: { connected: 3, inSync: 3, isDone: true }, refusals: ["web-1.shop refuses RDS 80: bad"] },
    says: ["Accepted True Accepted: ", "Reconciled False RefusedByProxies: web-1.shop refuses RDS 80: bad"],
  },
];

for (const { name, facts, says } of rows) {
  test(`the status of ${name}`, () => {
    const { conditions, observedGeneration } = objectStatus({ ...good, ...facts }, undefined, 0);
    assert.equal(observedGeneration, 2);
    assert.deepEqual(
      conditions.map(({ type, status, reason, message }) => `${type} ${status} ${reason}: ${message}`),
      says,
    );
  });
}

test("findings stand in it in Istio's form", () => {
  assert.deepEqual(objectStatus({ ...good, findings: [finding] }, undefined, 0).validationMessages, [
    {
      type: { code: "IST0101", name: "ReferencedResourceNotFound" },
      level: "ERROR",
      message: "spec.http[0]: no such host",
    },
  ]);
});

test("what has not changed keeps its time, says the same, and is not written again", () => {
  const sync = { connected: 1, inSync: 1, isDone: true };
  const before = objectStatus({ ...good, sync }, undefined, 0);
  const later = objectStatus({ ...good, sync }, before, 60_000);
  assert.deepEqual(later, before);
  assert.equal(saysSame({ ...before, theirs: 1 }, later), true);
  // Another leader has not seen who answered.
  assert.equal(saysSame(before, objectStatus(good, before, 60_000)), true);
  const changed = objectStatus({ ...good, generation: 3, setAside: [finding] }, before, 60_000);
  assert.equal(saysSame(before, changed), false);
  assert.deepEqual(
    changed.conditions.map(({ type, lastTransitionTime }) => `${type} ${lastTransitionTime}`),
    ["Accepted 1970-01-01T00:01:00Z"],
  );
  const found = objectStatus({ ...good, sync, findings: [finding] }, before, 0);
  assert.equal(saysSame(found, objectStatus({ ...good, sync }, found, 0)), false, "a finding that is gone");
});
