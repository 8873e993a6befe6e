// One round: each contestant is loaded once.
import type { ScenarioOptions } from "../scenario.ts";

export async function eachContestant<T>(
  round: number,
  contestants: readonly T[],
  { atOnce }: Pick<ScenarioOptions, "atOnce">,
  measure: (contestant: T) => Promise<void>,
): Promise<void> {
  const inTurn = round % 2 === 1 ? contestants : contestants.toReversed();
  if (atOnce) await Promise.all(inTurn.map(measure));
  else for (const contestant of inTurn) await measure(contestant);
}
