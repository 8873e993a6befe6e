// Each state of a roll-out, and what leads out of it.
import assert from "node:assert/strict";
import { test } from "node:test";
import { loadText, type RolloutSpec } from "@tulle/config";
import * as machine from "./rollout-machine.ts";
import type { Conditions, RolloutState } from "./rollout-machine.ts";
import { rolloutPlan } from "./rollout-plan.ts";

function specOf(strategy: string): RolloutSpec {
  const { resources, findings } = loadText(
    `apiVersion: rollouts.tulle.io/v1alpha1\nkind: Rollout\nmetadata: { name: a }\nspec: { host: a, stable: { subset: v1 }, canary: { subset: v2 }, strategy: ${strategy} }\n`,
    "a.yaml",
  );
  assert.deepEqual(findings, []);
  const [rollout] = resources;
  assert.ok(rollout?.kind === "Rollout");
  return rollout.spec;
}

const rate = (more = ""): string => `{ name: rate, successRate: {}, thresholdRange: { min: 99 }${more} }`;
const canary = (steps: string, more = ""): string => `{ canary: { steps: [${steps}]${more} } }`;
const good = { isGood: true, text: "100 %" };
const bad = { isGood: false, text: "50 %" };

/** What happens to a roll-out, in this order. */
interface Event {
  readonly atMs?: number;
  readonly conditions?: Conditions;
  readonly act?: (state: RolloutState, plan: ReturnType<typeof rolloutPlan>, nowMs: number) => RolloutState;
}

const judge =
  (verdict: typeof good, index = 0): NonNullable<Event["act"]> =>
  (state, plan, nowMs) =>
    machine.judged(state, machine.activeMetrics(state, plan)[index]!, verdict, nowMs);
const pause: Event["act"] = (state, _plan, nowMs) => machine.paused(state, "ann", nowMs);
const resume: Event["act"] = (state, plan, nowMs) => machine.resumed(state, plan, "ann", nowMs);
const promote: Event["act"] = (state, plan, nowMs) =>
  machine.promoted(state, plan, { isFull: false, by: "ann" }, nowMs);
const promoteFully: Event["act"] = (state, plan, nowMs) =>
  machine.promoted(state, plan, { isFull: true, by: "ann" }, nowMs);
const abort: Event["act"] = (state, _plan, nowMs) => machine.aborted(state, "by a person", nowMs);

const rows: readonly {
  readonly name: string;
  readonly strategy: string;
  readonly events?: readonly Event[];
  /** `<outcome> <step> <percent>[ <header>]`, and what it waits for. */
  readonly expected: string;
  readonly waits?: RegExp;
}[] = [
  {
    name: "weights alone: as fast as it can",
    strategy: canary("{ setWeight: 10 }, { setWeight: 50 }"),
    expected: "completed 2 100",
  },
  {
    name: "running: at a pause that is not over",
    strategy: canary("{ setWeight: 10 }, { pause: { duration: 10s } }, { setWeight: 50 }, { pause: {} }"),
    events: [{ atMs: 9999 }],
    expected: "running 1 10",
    waits: /pauses for 1 s more/,
  },
  {
    name: "running: past a pause, at one without an end",
    strategy: canary("{ setWeight: 10 }, { pause: { duration: 10s } }, { setWeight: 50 }, { pause: {} }"),
    events: [{ atMs: 10_000 }, { atMs: 9_000_000 }],
    expected: "running 3 50",
    waits: /until it is promoted or resumed/,
  },
  {
    name: "a pause without an end is resumed",
    strategy: canary("{ setWeight: 10 }, { pause: {} }"),
    events: [{ act: resume }],
    expected: "completed 2 100",
  },
  {
    name: "a person's pause holds whatever runs out meanwhile",
    strategy: canary("{ setWeight: 10 }, { pause: { duration: 10s } }, { setWeight: 50 }"),
    events: [{ act: pause }, { atMs: 20_000 }],
    expected: "running 1 10",
    waits: /paused by a person/,
  },
  {
    name: "a person's pause at a pause without an end: resume ends the person's alone",
    strategy: canary("{ setWeight: 10 }, { pause: {} }"),
    events: [{ act: pause }, { act: resume }],
    expected: "running 1 10",
    waits: /until it is promoted/,
  },
  {
    name: "promote passes over a pause, and ends a person's",
    strategy: canary("{ setWeight: 10 }, { pause: {} }, { setWeight: 50 }, { pause: {} }"),
    events: [{ act: pause }, { act: promote }],
    expected: "running 3 50",
    waits: /until it is promoted/,
  },
  {
    name: "promote passes over all steps",
    strategy: canary("{ setWeight: 10 }, { pause: {} }, { setWeight: 50 }, { pause: {} }"),
    events: [{ act: promoteFully }],
    expected: "completed 1 100",
  },
  {
    name: "aborted: everything goes back, whatever comes",
    strategy: canary("{ setHeaderRoute: { match: { name: a } } }, { setWeight: 10 }, { pause: { duration: 1s } }"),
    events: [{ act: abort }, { atMs: 100_000 }],
    expected: "aborted 2 0",
  },
  {
    name: "analysis: not before it was measured so often",
    strategy: canary(`{ setWeight: 10 }, { analysis: { metrics: [${rate(", count: 2")}] } }`),
    events: [{ act: judge(good) }],
    expected: "running 1 10",
    waits: /measures rate/,
  },
  {
    name: "analysis: good as often as it has to be",
    strategy: canary(`{ setWeight: 10 }, { analysis: { metrics: [${rate(", count: 2")}] } }`),
    events: [{ act: judge(good) }, { act: judge(good) }],
    expected: "completed 2 100",
  },
  {
    name: "analysis: each metric has to be good",
    strategy: canary(
      `{ setWeight: 10 }, { analysis: { metrics: [${rate()}, { name: quick, latency: {}, thresholdRange: { max: 9 } }] } }`,
    ),
    events: [{ act: judge(good) }],
    expected: "running 1 10",
    waits: /measures quick/,
  },
  {
    name: "analysis: back at the first bad measurement",
    strategy: canary(`{ setWeight: 10 }, { analysis: { metrics: [${rate(", count: 5")}] } }`),
    events: [{ act: judge(good) }, { act: judge(bad) }],
    expected: "aborted 1 0",
  },
  {
    name: "analysis: a bad measurement that is borne, and one too many",
    strategy: canary(`{ setWeight: 10 }, { analysis: { metrics: [${rate(", count: 5, failureLimit: 1")}] } }`),
    events: [{ act: judge(bad) }],
    expected: "running 1 10",
    waits: /measures rate/,
  },
  {
    name: "analysis: one too many",
    strategy: canary(`{ setWeight: 10 }, { analysis: { metrics: [${rate(", count: 5, failureLimit: 1")}] } }`),
    events: [{ act: judge(bad) }, { act: judge(bad) }],
    expected: "aborted 1 0",
  },
  {
    name: "background: nothing more before it was measured on what the canary has",
    strategy: canary("{ setWeight: 10 }, { setWeight: 50 }", `, analysis: { metrics: [${rate()}] }`),
    expected: "running 1 10",
    waits: /measures rate before it goes on/,
  },
  {
    name: "background: measured at each weight, and at the last before it completes",
    strategy: canary("{ setWeight: 10 }, { setWeight: 50 }", `, analysis: { metrics: [${rate()}] }`),
    events: [{ atMs: 10, act: judge(good) }, { atMs: 20 }],
    expected: "running 2 50",
    waits: /measures rate before it goes on/,
  },
  {
    name: "background: on to the end",
    strategy: canary("{ setWeight: 10 }, { setWeight: 50 }", `, analysis: { metrics: [${rate()}] }`),
    events: [
      { atMs: 10, act: judge(good) },
      { atMs: 20, act: judge(good) },
    ],
    expected: "completed 2 100",
  },
  {
    name: "background: bad in the middle of a pause",
    strategy: canary("{ setWeight: 10 }, { pause: {} }", `, analysis: { metrics: [${rate()}] }`),
    events: [{ act: judge(bad) }],
    expected: "aborted 1 0",
  },
  {
    name: "background: not before its first step",
    strategy: canary(
      "{ setWeight: 10 }, { setWeight: 50 }, { pause: {} }",
      `, analysis: { startingStep: 2, metrics: [${rate()}] }`,
    ),
    expected: "running 2 50",
    waits: /until it is promoted/,
  },
  {
    name: "frozen: not a request more",
    strategy: canary("{ setWeight: 10 }, { pause: { duration: 1s } }, { setWeight: 50 }, { pause: {} }"),
    events: [{ atMs: 5000, conditions: { frozen: "frozen" } }],
    expected: "running 2 10",
    waits: /^frozen$/,
  },
  {
    name: "frozen: less is possible",
    strategy: canary("{ setWeight: 10 }, { pause: { duration: 1s } }, { setWeight: 5 }, { pause: {} }"),
    events: [{ atMs: 5000, conditions: { frozen: "frozen" } }],
    expected: "running 3 5",
    waits: /until it is promoted/,
  },
  {
    name: "frozen: it does not complete",
    strategy: canary("{ setWeight: 10 }, { pause: { duration: 1s } }"),
    events: [{ atMs: 5000, conditions: { frozen: "frozen" } }],
    expected: "running 2 10",
    waits: /^frozen$/,
  },
  {
    name: "no pod of the canary: it gets nothing",
    strategy: canary("{ setWeight: 10 }, { pause: {} }"),
    events: [{ conditions: { noPods: "no pod" } }],
    expected: "running 1 10",
    waits: /until it is promoted/,
  },
  {
    name: "no pod of the canary: no more",
    strategy: canary("{ pause: { duration: 1s } }, { setWeight: 10 }"),
    events: [{ atMs: 1000, conditions: { noPods: "no pod" } }],
    expected: "running 1 0",
    waits: /^no pod$/,
  },
  {
    name: "a problem holds everything",
    strategy: canary("{ setWeight: 10 }, { pause: { duration: 1s } }, { setWeight: 5 }"),
    events: [{ atMs: 5000, conditions: { problem: "no such subset" } }],
    expected: "running 1 10",
    waits: /^no such subset$/,
  },
  {
    name: "and no longer than it is there",
    strategy: canary("{ setWeight: 10 }, { pause: { duration: 1s } }"),
    events: [{ atMs: 5000, conditions: { problem: "no such subset" } }, { atMs: 5001 }],
    expected: "completed 2 100",
  },
  {
    name: "requests by header, and none any more",
    strategy: canary(
      "{ setHeaderRoute: { match: { name: x-a } } }, { pause: {} }, { setHeaderRoute: {} }, { pause: {} }",
    ),
    expected: "running 1 0 x-a",
  },
  {
    name: "none any more",
    strategy: canary(
      "{ setHeaderRoute: { match: { name: x-a } } }, { pause: {} }, { setHeaderRoute: {} }, { pause: {} }",
    ),
    events: [{ act: promote }],
    expected: "running 3 0",
  },
  {
    name: "blue-green: a preview until it is promoted",
    strategy: "{ blueGreen: { previewHeader: { name: x-preview }, keepOldFor: 1m } }",
    events: [{ atMs: 1_000_000 }],
    expected: "running 1 0 x-preview",
    waits: /until it is promoted/,
  },
  {
    name: "blue-green: switched, and the old version is kept",
    strategy: "{ blueGreen: { previewHeader: { name: x-preview }, keepOldFor: 1m } }",
    events: [{ act: promote }],
    expected: "running 4 100",
    waits: /pauses for 60 s more/,
  },
  {
    name: "blue-green: taken back meanwhile",
    strategy: "{ blueGreen: { keepOldFor: 1m } }",
    events: [{ act: promote }, { act: abort }],
    expected: "aborted 2 0",
  },
  {
    name: "blue-green: on its own, once the preview is good",
    strategy: `{ blueGreen: { previewHeader: { name: x-preview }, autoPromotionEnabled: true, prePromotionAnalysis: { metrics: [${rate()}] }, postPromotionAnalysis: { metrics: [${rate()}] } } }`,
    events: [{ act: judge(good) }],
    expected: "running 4 100",
    waits: /measures rate/,
  },
];

for (const { name, strategy, events = [], expected, waits } of rows) {
  test(name, () => {
    const spec = specOf(strategy);
    const plan = rolloutPlan(spec);
    let nowMs = 1;
    let went = machine.advance(machine.started(spec, undefined, "ann", nowMs), plan, {}, nowMs);
    for (const { atMs = nowMs, conditions = {}, act } of events) {
      nowMs = atMs + 1;
      const state = act === undefined ? went.state : act(went.state, plan, nowMs);
      went = machine.advance(state, plan, conditions, nowMs);
    }
    const { outcome, step, weight, headerMatch } = went.state;
    assert.equal([outcome, step, weight, headerMatch?.name].filter((each) => each !== undefined).join(" "), expected);
    assert.match(went.wait?.message ?? "", waits ?? /^/);
    assert.equal(went.wait === undefined, outcome !== "running");
  });
}

test("the history is bounded, and goes on over a new start", () => {
  const spec = specOf(canary("{ setWeight: 1 }, { pause: {} }"));
  let state = machine.started(spec, undefined, "ann", 1);
  for (let index = 0; index < 200; index += 1) state = machine.paused({ ...state, isPaused: false }, "ann", index);
  assert.equal(state.history.length, machine.maxHistory);
  const again = machine.started(spec, state, "ann", 2);
  assert.equal(again.revision, 2);
  assert.equal(again.history.length, machine.maxHistory);
  assert.equal(again.history.at(-1)?.text, "started by ann (revision 2)");
});

test("a clock that was set back while nobody ran makes no pause longer, and no old measurement a new one", () => {
  const spec = specOf(
    canary(
      "{ setWeight: 10 }, { pause: { duration: 10s } }, { setWeight: 50 }",
      `, analysis: { metrics: [${rate()}] }`,
    ),
  );
  const plan = rolloutPlan(spec);
  const ahead = 1_000_000_000;
  const begun = machine.advance(machine.started(spec, undefined, "ann", ahead), plan, {}, ahead);
  const measured = judge(good)(begun.state, plan, ahead + 1);
  const back = machine.notAfter(measured, 1);
  assert.match(machine.advance(back, plan, {}, 2).wait?.message ?? "", /pauses for 10 s more/);
  const over = machine.advance(back, plan, {}, 10_001);
  assert.match(over.wait?.message ?? "", /measures rate before it goes on/);
  assert.equal(over.state.weight, 10);
  const went = machine.advance(judge(good)(over.state, plan, 10_002), plan, {}, 10_002);
  assert.equal(went.state.weight, 50);
});
