// `npm run bench -- --compare COMMIT`: what this tree's CPU is to a commit's. This tree's bench loads the Tulle of both
// at the same time on one core, where they take turns within milliseconds: what disturbs the machine disturbs both
// alike. Loaded in turn for a second each, on a busy machine, ten ratios of a request went from 0.74 to 1.17; loaded at
// once, from 0.98 to 1.06. Each start makes new processes, so that a lucky layout of one of them does not decide.
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import path from "node:path";
import { lastLines, runCommand } from "../tests/tools/run-command.ts";
import { markdownTable } from "./measure/markdown-table.ts";
import { type Weighted, weightedMedian } from "./measure/median.ts";
import type { CpuRow, CpuSlice, Scenario } from "./scenario.ts";
import { ownTree, type Tree } from "./tree.ts";

const setUpTimeoutMs = 600_000;
const sliceSeconds = 1;
const maxReasonLength = 240;

export interface CompareOptions {
  readonly starts: number;
  /** Duration of the load on each tree after one start. */
  readonly seconds: number;
  readonly progress: (text: string) => void;
}

/** What a unit of work cost in the same slice of time, in microseconds. */
export interface Pair {
  readonly now: number;
  readonly before: number;
  /** The least that one of both did: what a busy machine let through little of says little. */
  readonly units: number;
}

export interface ComparedRow {
  readonly name: string;
  /** Of each start, slice by slice. */
  readonly starts: (readonly Pair[])[];
}

export interface Comparison {
  readonly before: string;
  readonly rows: readonly ComparedRow[];
  /** By scenario, why it never came to its end; mostly, since today's bench cannot drive the commit. */
  readonly failures: ReadonlyMap<string, string>;
}

/** Scenarios without rows of CPU are left out. `commit` is anything that git takes for one. */
export async function compareCommits(
  scenarios: readonly Scenario[],
  commit: string,
  options: CompareOptions,
): Promise<Comparison> {
  await using other = await checkOut(commit);
  // Awaited, or the tree would go before it is measured.
  return await compareTrees(scenarios, other, options);
}

export async function compareTrees(
  scenarios: readonly Scenario[],
  before: Tree,
  { starts, seconds, progress }: CompareOptions,
): Promise<Comparison> {
  const load = { rounds: 2 * Math.ceil(seconds / sliceSeconds / 2), seconds: sliceSeconds, atOnce: true };
  const trees = [before, ownTree];
  const proxies = trees.map(({ name }) => name);
  const rows = new Map<string, ComparedRow>();
  const failures = new Map<string, string>();
  for (let start = 1; start <= starts; start++) {
    for (const { name, run } of scenarios.filter(({ isCompared }) => isCompared)) {
      try {
        const { cpu = [] } = await run({ ...load, trees, proxies, also: [], progress });
        for (const [work, pairs] of pairsOf(cpu, before)) {
          const row = `${name}: ${work}`;
          rows.set(row, { name: row, starts: [...(rows.get(row)?.starts ?? []), pairs] });
          progress(`start ${start}, ${row}: ${medianRatio(pairs).toFixed(3)}`);
        }
      } catch (error) {
        const reason = error instanceof Error ? error.message : String(error);
        failures.set(name, reason);
        progress(`start ${start}, ${name}: not measured: ${reason}`);
      }
    }
  }
  return { before: before.name, rows: [...rows.values()], failures };
}

function pairsOf(cpu: readonly CpuRow[], before: Tree): ReadonlyMap<string, readonly Pair[]> {
  const own = cpu.filter(({ contestant }) => contestant === ownTree.name);
  return new Map(
    own.map(({ work, slices }) => {
      const others = cpu.find((row) => row.contestant === before.name && row.work === work)!.slices;
      return [work, slices.map((slice, index) => pairOf(slice, others[index]!))];
    }),
  );
}

function pairOf(now: CpuSlice, before: CpuSlice): Pair {
  return { now: now.microseconds, before: before.microseconds, units: Math.min(now.units, before.units) };
}

function medianRatio(pairs: readonly Pair[]): number {
  return medianOf(pairs, ({ now, before }) => now / before);
}

function medianOf(pairs: readonly Pair[], value: (pair: Pair) => number): number {
  return weightedMedian(pairs.map((pair): Weighted => ({ value: value(pair), weight: pair.units })));
}

interface OtherTree extends Tree, AsyncDisposable {}

/** A work tree of the commit's own, set up as a clone of it is, and taken away again. */
async function checkOut(commit: string): Promise<OtherTree> {
  const hash = await git("log", "-1", "--format=%h", "--end-of-options", commit);
  const cache = path.join(ownTree.folder, ".cache");
  await mkdir(cache, { recursive: true });
  const folder = await mkdtemp(path.join(cache, "bench-commit-"));
  const remove = async (): Promise<void> => {
    await rm(folder, { recursive: true, force: true });
    await git("worktree", "prune");
  };
  try {
    await git("worktree", "add", "--detach", "--force", folder, commit);
    await program("node", ["tools/bootstrap.mjs"], folder, setUpTimeoutMs);
  } catch (error) {
    await remove();
    throw error;
  }
  return { folder, name: `Tulle ${hash}`, [Symbol.asyncDispose]: remove };
}

function git(...args: readonly string[]): Promise<string> {
  return program("git", args, ownTree.folder, 60_000).then((text) => text.trim());
}

/** Standard output. @throws when the command does not end with 0 */
async function program(command: string, args: readonly string[], cwd: string, timeoutMs: number): Promise<string> {
  const result = await runCommand(command, args, { cwd, timeoutMs });
  if (result.code !== 0) throw new Error(`${command} ${args.join(" ")} failed: ${lastLines(result)}`);
  return result.stdout;
}

/**
 * The median of the pairs' ratios, not the ratio of medians: the two of a pair have had the same machine. Beside it
 * what each start had, which says how much is the luck of a start, and the least of each tree, which a disturbance can
 * only miss.
 */
export function comparisonTable({ before, rows, failures }: Comparison): string {
  const measured = rows.map(({ name, starts }) => {
    const pairs = starts.flat();
    const costs = (["before", "now"] as const).flatMap((tree) => {
      const least = Math.min(...pairs.map((pair) => pair[tree]));
      return [medianOf(pairs, (pair) => pair[tree]).toFixed(1), least.toFixed(1)];
    });
    const ofStarts = starts.map((each) => medianRatio(each).toFixed(2));
    return [name, ...costs, medianRatio(pairs).toFixed(3), ofStarts.join(" ")];
  });
  const missing = [...failures]
    .filter(([scenario]) => !rows.some(({ name }) => name.startsWith(`${scenario}: `)))
    .map(([scenario, reason]) => {
      const line = reason.replaceAll(/\s+/g, " ").replaceAll("|", "\\|").slice(0, maxReasonLength);
      return [scenario, "–", "–", "–", "–", "–", `not measured: ${line}`];
    });
  const header = ["CPU µs", before, "least", "now", "least", "median ratio", "of each start"];
  return markdownTable(header, [...measured, ...missing]);
}
