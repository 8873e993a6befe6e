// When a workload renews, told as sequences of events with the clock and the dice in hand.
import assert from "node:assert/strict";
import test from "node:test";
import fc from "fast-check";
import { dayMs, hourMs, issueTo, newAuthority, nowMs } from "../testing/workload.ts";
import {
  renewalDueMs,
  type RenewalEvent,
  type RenewalState,
  renewalTimeMs,
  startRenewal,
  stepRenewal,
} from "./renewal.ts";

const authority = await newAuthority();
const [first, second] = await Promise.all([issueTo(authority), issueTo(authority)]);
const middle = () => 0.5;

function shown(state: RenewalState): string {
  const due = renewalDueMs(state);
  const which =
    state.phase !== "waiting" && state.current === undefined ? "none" : state.current === first ? "first" : "second";
  const after = due === undefined ? "" : ` ${(due - nowMs) / 1000} s`;
  return `${state.phase} ${which}${after}`;
}

type Step = readonly [atSeconds: number, event: RenewalEvent];
const due: RenewalEvent = { type: "due" };
const issued = { type: "issued", certificate: second } as const;
const failed = { type: "failed", reason: "unavailable" } as const;

const rows: readonly {
  readonly name: string;
  readonly start: typeof first | undefined;
  readonly steps: readonly Step[];
  readonly expected: readonly string[];
}[] = [
  { name: "without a certificate it asks at once", start: undefined, steps: [], expected: ["requesting none"] },
  {
    name: "with a young one it waits for half of its life",
    start: first,
    steps: [],
    expected: ["waiting first 43200 s"],
  },
  {
    name: "a timer that fires early changes nothing",
    start: first,
    steps: [[43_199, due]],
    expected: ["waiting first 43200 s", "waiting first 43200 s"],
  },
  {
    name: "at half life it asks, and waits again with the new one",
    start: first,
    steps: [
      [43_200, due],
      [43_201, issued],
    ],
    expected: ["waiting first 43200 s", "requesting first", "waiting second 43200 s"],
  },
  {
    name: "failures make pauses that double, and the old one serves",
    start: first,
    steps: [
      [43_200, due],
      [43_200, failed],
      [43_201, due],
      [43_201, failed],
      [43_202, due],
      [43_202, failed],
      [43_204, due],
      [43_204, issued],
    ],
    expected: [
      "waiting first 43200 s",
      "requesting first",
      "retrying first 43200.375 s",
      "requesting first",
      "retrying first 43201.75 s",
      "requesting first",
      "retrying first 43203.5 s",
      "requesting first",
      "waiting second 43200 s",
    ],
  },
  {
    name: "answers that come too late change nothing",
    start: first,
    steps: [
      [1, issued],
      [2, failed],
    ],
    expected: ["waiting first 43200 s", "waiting first 43200 s", "waiting first 43200 s"],
  },
  {
    name: "asked to come soon, it comes within a hundredth of its life",
    start: first,
    steps: [[100, { type: "renewSoon" }]],
    expected: ["waiting first 43200 s", "waiting first 532 s"],
  },
  {
    name: "a pause ends where the clock is set back by more than it",
    start: undefined,
    steps: [
      [7200, failed],
      [7200, due],
      [0, due],
    ],
    expected: ["requesting none", "retrying none 7200.375 s", "retrying none 7200.375 s", "requesting none"],
  },
  {
    name: "a certificate of the future is replaced at once",
    start: first,
    steps: [
      [-60, due],
      [-7200, due],
    ],
    expected: ["waiting first 43200 s", "waiting first 43200 s", "requesting first"],
  },
  {
    name: "one that nobody trusts any more is replaced at once, and only once",
    start: first,
    steps: [
      [100, { type: "unusable" }],
      [101, { type: "unusable" }],
      [102, issued],
    ],
    expected: ["waiting first 43200 s", "requesting first", "requesting first", "waiting second 43200 s"],
  },
];

for (const { name, start, steps, expected } of rows) {
  test(name, () => {
    let state = startRenewal(start, nowMs, middle);
    const seen = [shown(state)];
    for (const [atSeconds, event] of steps) {
      state = stepRenewal(state, event, nowMs + atSeconds * 1000, middle);
      seen.push(shown(state));
    }
    assert.deepEqual(seen, expected);
  });
}

test("one that was kept over a long stop is renewed at once, and serves meanwhile", () => {
  assert.equal(shown(startRenewal(first, nowMs + 20 * hourMs, middle)), "requesting first");
});

test("other roots take the place of the old ones, and the time stays", () => {
  const state = startRenewal(first, nowMs, middle);
  const replaced = stepRenewal(
    state,
    { type: "rootsReplaced", certificate: { ...first, rootsPem: "more" } },
    nowMs,
    middle,
  );
  assert.equal(replaced.current?.rootsPem, "more");
  assert.equal(renewalDueMs(replaced), renewalDueMs(state));
  assert.equal(stepRenewal(state, { type: "rootsReplaced", certificate: second }, nowMs, middle), state);
});

test("a certificate of twenty seconds is renewed after ten, although it is backdated by two minutes", async () => {
  const short = await issueTo(authority, { ttlMs: 20_000 });
  assert.equal(renewalTimeMs(short, middle), nowMs + 10_000);
});

test("renewal lies between 49 and 51 hundredths of the life", () => {
  fc.assert(
    fc.property(fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }), (dice) => {
      const share = (renewalTimeMs(first, () => dice) - nowMs) / dayMs;
      assert.ok(share >= 0.49 && share <= 0.51, String(share));
    }),
  );
  assert.equal(
    renewalTimeMs(first, () => 0),
    nowMs + 0.49 * dayMs,
  );
});

test("while a certificate lives, an authority that fails is asked again before its end, and never without a pause", () => {
  fc.assert(
    fc.property(fc.infiniteStream(fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true })), (dice) => {
      const random = () => dice.next().value as number;
      let state = startRenewal(first, nowMs, random);
      let requests = 0;
      while (renewalDueMs(state)! < first.leaf.notAfterMs) {
        const atMs = renewalDueMs(state)!;
        state = stepRenewal(state, due, atMs, random);
        assert.equal(state.phase, "requesting");
        state = stepRenewal(state, failed, atMs, random);
        requests += 1;
        const pauseMs = renewalDueMs(state)! - atMs;
        assert.ok(pauseMs >= 250 && pauseMs <= 60_000, String(pauseMs));
        assert.ok(pauseMs <= Math.max(500, (first.leaf.notAfterMs - atMs) / 10) + 1, String(pauseMs));
      }
      // Twelve hours of at most a minute between requests.
      assert.ok(requests >= 700 && requests < 3000, String(requests));
    }),
    { numRuns: 20 },
  );
});
