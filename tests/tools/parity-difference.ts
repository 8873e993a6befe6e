// How a table that holds this proxy against a stock Envoy says what either is expected to do: once where the two agree;
// where they differ on purpose, what each does, and why. docs/differences-from-envoy.md has the same for people.

export interface ParityDifference<Outcome> {
  readonly ours: Outcome;
  readonly envoys: Outcome;
  readonly why: string;
}

/** What a row expects, of either proxy. */
export type ParityExpectation<Outcome> = Outcome | ParityDifference<Outcome>;

export function expectedOfBoth<Outcome>(
  expected: ParityExpectation<Outcome>,
): Pick<ParityDifference<Outcome>, "ours" | "envoys"> {
  if (!isDifference(expected)) return { ours: expected, envoys: expected };
  return { ours: expected.ours, envoys: expected.envoys };
}

function isDifference<Outcome>(expected: ParityExpectation<Outcome>): expected is ParityDifference<Outcome> {
  return typeof expected === "object" && expected !== null && "why" in expected && "envoys" in expected;
}
