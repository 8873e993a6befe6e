// Rollouts, step by step: never fewer ready pods than wanted, never more than the surge.
import assert from "node:assert/strict";
import { test } from "node:test";
import { planRollout, type RolloutPod, type RolloutStep } from "./plan-rollout.ts";

// "new:ready", "old", "old:ready:leaving": template, then what else is true of the pod.
function pods(...texts: readonly string[]): RolloutPod[] {
  return texts.map((text, index) => {
    const [template = "", ...flags] = text.split(":");
    const name = `${template}${index}`;
    return { name, isCurrent: template === "new", ready: flags.includes("ready"), leaving: flags.includes("leaving") };
  });
}

const cases: readonly { name: string; replicas: number; pods: RolloutPod[]; expected: RolloutStep }[] = [
  { name: "nothing runs yet", replicas: 2, pods: [], expected: { start: 2, remove: [] } },
  { name: "all is well", replicas: 1, pods: pods("new:ready"), expected: { start: 0, remove: [] } },
  { name: "scale up", replicas: 3, pods: pods("new:ready"), expected: { start: 2, remove: [] } },
  { name: "scale down", replicas: 1, pods: pods("new:ready", "new:ready"), expected: { start: 0, remove: ["new0"] } },
  {
    name: "scale down takes the unready first",
    replicas: 1,
    pods: pods("new:ready", "new"),
    expected: { start: 0, remove: ["new1"] },
  },
  {
    name: "scale to zero",
    replicas: 0,
    pods: pods("new:ready", "new"),
    expected: { start: 0, remove: ["new1", "new0"] },
  },
  {
    name: "a new template starts beside the old",
    replicas: 1,
    pods: pods("old:ready"),
    expected: { start: 1, remove: [] },
  },
  {
    name: "the old waits for the new",
    replicas: 1,
    pods: pods("old:ready", "new"),
    expected: { start: 0, remove: [] },
  },
  {
    name: "the old leaves when the new is ready",
    replicas: 1,
    pods: pods("old:ready", "new:ready"),
    expected: { start: 0, remove: ["old0"] },
  },
  {
    name: "one that was never ready leaves at once",
    replicas: 1,
    pods: pods("old"),
    expected: { start: 1, remove: ["old0"] },
  },
  {
    name: "the surge is one pod for four",
    replicas: 4,
    pods: pods("old:ready", "old:ready", "old:ready", "old:ready"),
    expected: { start: 1, remove: [] },
  },
  {
    name: "one goes for each that came",
    replicas: 4,
    pods: pods("old:ready", "old:ready", "old:ready", "old:ready", "new:ready"),
    expected: { start: 0, remove: ["old0"] },
  },
  {
    name: "leaving pods do not count",
    replicas: 4,
    pods: pods("old:ready:leaving", "old:ready", "old:ready", "old:ready", "new:ready"),
    expected: { start: 1, remove: [] },
  },
  {
    name: "a new template and scale to zero",
    replicas: 0,
    pods: pods("old:ready"),
    expected: { start: 0, remove: ["old0"] },
  },
];

for (const { name, replicas, pods: present, expected } of cases) {
  test(name, () => {
    assert.deepEqual(planRollout(replicas, present), expected);
  });
}

test("a rollout ends, whatever becomes ready when", () => {
  for (const replicas of [1, 2, 3, 7]) {
    let all: RolloutPod[] = Array.from(
      { length: replicas },
      (_, index) => pods("old:ready").map((pod) => ({ ...pod, name: `old${index}` }))[0]!,
    );
    let made = 0;
    for (let round = 0; round < 100; round += 1) {
      const step = planRollout(replicas, all);
      all = all.filter((pod) => !step.remove.includes(pod.name));
      assert.ok(all.filter((pod) => pod.ready).length >= replicas, "fewer ready pods than wanted");
      // The oldest of the unready becomes ready.
      const next = all.findIndex((pod) => !pod.ready);
      all = all.map((pod, index) => (index === next ? { ...pod, ready: true } : pod));
      for (let count = 0; count < step.start; count += 1) {
        all.push({ name: `new${(made += 1)}`, isCurrent: true, ready: false, leaving: false });
      }
      assert.ok(all.length <= replicas + Math.max(1, Math.ceil(replicas / 4)), "more pods than the surge allows");
    }
    assert.ok(all.every((pod) => pod.isCurrent && pod.ready));
    assert.equal(all.length, replicas);
  }
});
