// The change from one root to another, phase by phase, and that no two peers ever meet who do not believe each other.
import assert from "node:assert/strict";
import test from "node:test";
import fc from "fast-check";
import { dayMs, hourMs, nowMs } from "../testing/workload.ts";
import type { AuthorityMaterial } from "./authority-material.ts";
import { createAuthority } from "./create-authority.ts";
import { advanceRotation, type AuthorityState, beginRotation, rotationDueMs, trustedRoots } from "./root-rotation.ts";

const create = () => createAuthority({ trustDomain: "cluster.local", signer: "root", nowMs });
const [first, second, third] = await Promise.all([create(), create(), create()]);
const materials = [first, second, third];
const names = ["first", "second", "third"];
const steady = { phase: "steady", signing: first } as AuthorityState;
const times = { introduceMs: hourMs, overlapMs: dayMs };

function nameOf(der: Buffer): string {
  return names[materials.findIndex((material) => material.certificate.der.equals(der))]!;
}

/** `phase: who signs; who is trusted; when the next phase begins, in hours`. */
function shown(state: AuthorityState): string {
  const due = rotationDueMs(state);
  const roots = trustedRoots(state).map(({ der }) => nameOf(der));
  const after = due === undefined ? "" : `; ${(due - nowMs) / hourMs} h`;
  return `${state.phase}: ${nameOf(state.signing.certificate.der)}; ${roots.join(" ")}${after}`;
}

type Step = { readonly to: AuthorityMaterial; readonly atHours: number } | { readonly atHours: number };

const rows: readonly {
  readonly name: string;
  readonly steps: readonly Step[];
  readonly expected: readonly string[];
}[] = [
  {
    name: "from the first to the second root",
    steps: [{ to: second, atHours: 0 }, { atHours: 0.99 }, { atHours: 1 }, { atHours: 24.9 }, { atHours: 25 }],
    expected: [
      "introducing: first; first second; 1 h",
      "introducing: first; first second; 1 h",
      "retiring: second; second first; 25 h",
      "retiring: second; second first; 25 h",
      "steady: second; second",
    ],
  },
  {
    name: "after a long sleep the overlap still is whole",
    steps: [{ to: second, atHours: 0 }, { atHours: 100 }, { atHours: 124 }],
    expected: [
      "introducing: first; first second; 1 h",
      "retiring: second; second first; 124 h",
      "steady: second; second",
    ],
  },
  {
    name: "to itself",
    steps: [{ to: first, atHours: 0 }],
    expected: ["steady: first; first"],
  },
  {
    name: "back to the first before the second signs",
    steps: [
      { to: second, atHours: 0 },
      { to: first, atHours: 0.5 },
    ],
    expected: ["introducing: first; first second; 1 h", "steady: first; first"],
  },
  {
    name: "the same twice keeps the clock",
    steps: [
      { to: second, atHours: 0 },
      { to: second, atHours: 0.5 },
    ],
    expected: ["introducing: first; first second; 1 h", "introducing: first; first second; 1 h"],
  },
  {
    name: "to a third, given up for the first, and taken up again",
    steps: [
      { to: second, atHours: 0 },
      { atHours: 1 },
      { to: third, atHours: 1 },
      { to: first, atHours: 1 },
      { to: third, atHours: 1 },
    ],
    expected: [
      "introducing: first; first second; 1 h",
      "retiring: second; second first; 25 h",
      "introducing: second; second first third; 2 h",
      "retiring: first; first second; 25 h",
      "introducing: first; first second third; 2 h",
    ],
  },
  {
    name: "to a third instead of the second",
    steps: [{ to: second, atHours: 0 }, { to: third, atHours: 0.5 }, { atHours: 1.5 }],
    expected: [
      "introducing: first; first second; 1 h",
      "introducing: first; first third; 1.5 h",
      "retiring: third; third first; 25.5 h",
    ],
  },
  {
    name: "to a third while the first retires",
    steps: [{ to: second, atHours: 0 }, { atHours: 1 }, { to: third, atHours: 2 }, { atHours: 3 }, { atHours: 27 }],
    expected: [
      "introducing: first; first second; 1 h",
      "retiring: second; second first; 25 h",
      "introducing: second; second first third; 3 h",
      "retiring: third; third second first; 27 h",
      "steady: third; third",
    ],
  },
  {
    name: "back to the first while it retires, at once",
    steps: [{ to: second, atHours: 0 }, { atHours: 1 }, { to: first, atHours: 2 }, { atHours: 26 }],
    expected: [
      "introducing: first; first second; 1 h",
      "retiring: second; second first; 25 h",
      "retiring: first; first second; 26 h",
      "steady: first; first",
    ],
  },
];

for (const { name, steps, expected } of rows) {
  test(`a change ${name}`, () => {
    let state = steady;
    const seen = steps.map((step) => {
      const atMs = nowMs + step.atHours * hourMs;
      state = "to" in step ? beginRotation(state, step.to, times, atMs) : advanceRotation(state, atMs);
      return shown(state);
    });
    assert.deepEqual(seen, expected);
  });
}

test("an intermediate that is renewed under a trusted root signs at once", async () => {
  const withBoth: AuthorityMaterial = { ...second, roots: [...first.roots, ...second.roots] };
  const start: AuthorityState = { phase: "steady", signing: { ...first, roots: withBoth.roots } };
  assert.deepEqual(beginRotation(start, withBoth, times, nowMs), { phase: "steady", signing: withBoth });
});

test("a later change with a shorter overlap keeps the promises of an earlier one", () => {
  const retiring = advanceRotation(beginRotation(steady, second, times, nowMs), nowMs + hourMs);
  const short = { introduceMs: hourMs, overlapMs: hourMs };
  const back = beginRotation(retiring, first, short, nowMs + 2 * hourMs);
  assert.equal(shown(back), "retiring: first; first second; 25 h");
  const onward = advanceRotation(beginRotation(retiring, third, short, nowMs + 2 * hourMs), nowMs + 3 * hourMs);
  assert.equal(shown(onward), "retiring: third; third second first; 25 h");
});

test("what is introduced already, given once more, gives the very same state", () => {
  const introducing = beginRotation(steady, second, times, nowMs);
  assert.equal(beginRotation(introducing, second, times, nowMs + hourMs / 2), introducing);
});

test("nothing that is due gives the very same state", () => {
  const introducing = beginRotation(steady, second, times, nowMs);
  assert.equal(advanceRotation(introducing, nowMs + 1), introducing);
  assert.equal(advanceRotation(steady, nowMs + 1), steady);
});

test("whatever changes follow each other, whoever renewed in time believes and is believed", () => {
  // Peers fetch certificate and roots together, at least once an introduction; a certificate lives as long as the
  // overlap.
  const event = fc.record({
    afterMs: fc.integer({ min: 0, max: 2 * hourMs }),
    to: fc.option(fc.constantFrom(0, 1, 2), { nil: undefined }),
  });
  fc.assert(
    fc.property(fc.array(event, { maxLength: 25 }), (events) => {
      let state = steady;
      let atMs = nowMs;
      let peers: { readonly atMs: number; readonly signer: string; readonly roots: readonly string[] }[] = [];
      for (const { afterMs, to } of events) {
        // Time goes in small steps, at each of which a peer renews.
        for (let left = afterMs; left >= 0; left -= hourMs / 4) {
          atMs += Math.min(Math.max(left, 0), hourMs / 4);
          state = advanceRotation(state, atMs);
          const roots = trustedRoots(state).map(({ der }) => nameOf(der));
          peers = peers.filter((peer) => atMs - peer.atMs < hourMs);
          peers.push({ atMs, signer: nameOf(state.signing.certificate.der), roots });
          for (const one of peers) assert.ok(peers.every((other) => other.roots.includes(one.signer)));
        }
        if (to !== undefined)
          state = beginRotation(state, materials[to]!, { introduceMs: hourMs, overlapMs: 2 * hourMs }, atMs);
      }
    }),
    { numRuns: 200 },
  );
});
