// Rounds of load through sidecar pairs, one after the other, and the table of what each side of each pair cost.
import { eachContestant } from "../measure/each-contestant.ts";
import { markdownTable } from "../measure/markdown-table.ts";
import { median } from "../measure/median.ts";
import { ofContestant } from "../measure/of-contestant.ts";
import { warmUp } from "../measure/warm-up.ts";
import type { CpuRow, ScenarioOptions } from "../scenario.ts";
import { type PairRound, type Side, SidecarPair, type SidecarPairOptions, sides } from "./sidecar-pair.ts";

/** In four seconds compiling still took 6 % of a sidecar's CPU. */
const enoughWarmth = { seconds: 6, requests: 25_000 };

export interface MeasuredPair {
  readonly name: string;
  /** The name of its kind. */
  readonly contestant: string;
  readonly rounds: readonly PairRound[];
}

/** Every pair runs from the beginning to the end: what disturbs the machine for a while disturbs all of them. */
export async function measurePairs(
  pairs: readonly SidecarPairOptions[],
  options: ScenarioOptions,
): Promise<readonly MeasuredPair[]> {
  await using running = new AsyncDisposableStack();
  const started: SidecarPair[] = [];
  for (const pair of pairs) started.push(running.use(await ofContestant(pair.name, SidecarPair.start(pair))));
  for (const pair of started) await warmUp((seconds) => pair.load(seconds), enoughWarmth);
  const measured = pairs.map(({ name, kind }) => ({ name, contestant: kind.name, rounds: [] as PairRound[] }));
  for (let round = 1; round <= options.rounds; round++) {
    await eachContestant(round, [...started.entries()], options, async ([index, pair]) => {
      const result = await pair.measure(options.seconds);
      measured[index]!.rounds.push(result);
      const cost = sides.map((side) => `${result.usage[side].cpuMicrosecondsPerRequest.toFixed(1)} (${side})`);
      options.progress(`round ${round} ${pair.name}: ${cost.join(", ")} µs CPU a request`);
    });
  }
  return measured;
}

/** The median over a pair's rounds of what both sides cost together. */
export function cpuOfBoth({ rounds }: MeasuredPair): number {
  return median(rounds.map(bothSides));
}

function bothSides({ usage }: PairRound): number {
  return usage.client.cpuMicrosecondsPerRequest + usage.server.cpuMicrosecondsPerRequest;
}

/** The median over a pair's rounds of what one side of it cost. */
export function cpuOf({ rounds }: MeasuredPair, side: Side): number {
  return median(rounds.map(({ usage }) => usage[side].cpuMicrosecondsPerRequest));
}

/** Rows of pairs that differ in their kind alone; `work` is what they all did. */
export function pairsCpu(work: string, measured: readonly MeasuredPair[]): readonly CpuRow[] {
  return sides.flatMap((side) =>
    measured.map(({ contestant, rounds }) => ({
      work: `${work}, ${side} side`,
      contestant,
      slices: rounds.map(({ usage, requests }) => ({
        microseconds: usage[side].cpuMicrosecondsPerRequest,
        units: requests,
      })),
    })),
  );
}

/** A row for each side of each pair; ratios are to the first pair's same side. */
export function pairTable(measured: readonly MeasuredPair[]): string {
  const [first] = measured;
  const rows = sides.flatMap((side) =>
    measured.map((pair) => {
      const of = (value: (round: PairRound) => number): number => median(pair.rounds.map(value));
      return [
        `${pair.name}, ${side} side`,
        cpuOf(pair, side).toFixed(1),
        (cpuOf(pair, side) / cpuOf(first!, side)).toFixed(2),
        of(({ requestsPerSecond }) => requestsPerSecond).toFixed(0),
        of(({ p50Ms }) => p50Ms).toFixed(2),
        of(({ p99Ms }) => p99Ms).toFixed(2),
        of(({ usage }) => usage[side].residentBytes / 1024 / 1024).toFixed(0),
      ];
    }),
  );
  const title = `÷ ${first!.name}`;
  return markdownTable(["sidecar", "CPU µs/request", title, "requests/s", "p50 ms", "p99 ms", "memory MiB"], rows);
}
