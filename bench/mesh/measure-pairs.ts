// Rounds of load through sidecar pairs, one after the other, and the table of what each side of each pair cost.
import { markdownTable } from "../measure/markdown-table.ts";
import { median } from "../measure/median.ts";
import type { CpuRows, ScenarioOptions } from "../scenario.ts";
import { type PairRound, type Side, SidecarPair, type SidecarPairOptions, sides } from "./sidecar-pair.ts";

/** Until V8 has compiled what is hot: four seconds of it took 6 % of a sidecar's CPU. */
const warmUpSeconds = 6;

export interface MeasuredPair {
  readonly name: string;
  readonly rounds: readonly PairRound[];
}

/** Every pair runs at once, and is loaded in turn: what disturbs the machine for a while disturbs all of them. */
export async function measurePairs(
  pairs: readonly SidecarPairOptions[],
  options: ScenarioOptions,
): Promise<readonly MeasuredPair[]> {
  await using running = new AsyncDisposableStack();
  const started: SidecarPair[] = [];
  for (const pair of pairs) started.push(running.use(await SidecarPair.start(pair)));
  for (const pair of started) await pair.load(warmUpSeconds);
  const measured = started.map(({ name }) => ({ name, rounds: [] as PairRound[] }));
  for (let round = 1; round <= options.rounds; round++) {
    for (const [index, pair] of started.entries()) {
      const result = await pair.measure(options.seconds);
      measured[index]!.rounds.push(result);
      const cost = sides.map((side) => `${result.usage[side].cpuMicrosecondsPerRequest.toFixed(1)} (${side})`);
      options.progress(`round ${round} ${pair.name}: ${cost.join(", ")} µs CPU a request`);
    }
  }
  return measured;
}

/** The median over a pair's rounds of what one side of it cost. */
export function cpuOf({ rounds }: MeasuredPair, side: Side): number {
  return median(rounds.map(({ usage }) => usage[side].cpuMicrosecondsPerRequest));
}

/** A row for each side of each pair in what a scenario of pairs gave as data. */
export function pairsCpu(scenario: string, data: unknown): CpuRows {
  const { measured } = data as { readonly measured: readonly MeasuredPair[] };
  return Object.fromEntries(
    measured.flatMap((pair) =>
      sides.map((side) => [`${scenario}: ${pair.name}, ${side} side`, cpuOf(pair, side)] as const),
    ),
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
