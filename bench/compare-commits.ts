// `npm run bench -- --compare COMMIT`: this tree and a commit, each by its own bench, in turn in one run. What disturbs the machine for
// a while disturbs both, and each round starts new processes, so that a lucky layout of one of them does not decide.
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import path from "node:path";
import { lastLines, runCommand } from "../tests/tools/run-command.ts";
import { markdownTable } from "./measure/markdown-table.ts";
import { median } from "./measure/median.ts";
import type { CpuRows, Scenario } from "./scenario.ts";

const root = path.resolve(import.meta.dirname, "..");
/** One scenario, one round, one commit. */
const benchTimeoutMs = 300_000;
const setUpTimeoutMs = 600_000;

export interface CompareOptions {
  /** Anything that git takes for a commit. */
  readonly commit: string;
  readonly rounds: number;
  readonly seconds: number;
  readonly progress: (text: string) => void;
}

/** One pair of measurements a round: what a row cost in this tree, and in the commit. */
export interface Pair {
  readonly now: number;
  readonly before: number;
}

export interface Comparison {
  readonly markdown: string;
  readonly data: Readonly<Record<string, readonly Pair[]>>;
}

/** Scenarios without rows of CPU are left out. */
export async function compareCommits(scenarios: readonly Scenario[], options: CompareOptions): Promise<Comparison> {
  const measured = scenarios.filter((scenario) => scenario.cpuRows !== undefined);
  await using other = await checkOut(options.commit);
  options.progress(`comparing with ${other.name}`);
  const pairs = new Map<string, Pair[]>();
  for (let round = 1; round <= options.rounds; round++) {
    for (const { name, cpuRows } of measured) {
      const measure = async (tree: string): Promise<CpuRows> => cpuRows!(await benchOf(tree, name, options));
      // In turn also within a round, so that neither is always the first.
      const nowFirst = round % 2 === 1;
      const first = await measure(nowFirst ? root : other.folder);
      const second = await measure(nowFirst ? other.folder : root);
      const [now, before] = nowFirst ? [first, second] : [second, first];
      for (const row of Object.keys(now)) {
        const pair = { now: now[row]!, before: before[row] ?? Number.NaN };
        pairs.set(row, [...(pairs.get(row) ?? []), pair]);
        options.progress(`round ${round} ${row}: ${pair.before.toFixed(1)} → ${pair.now.toFixed(1)}`);
      }
    }
  }
  return { markdown: comparisonTable(pairs, other.name), data: Object.fromEntries(pairs) };
}

interface OtherTree extends AsyncDisposable {
  readonly folder: string;
  /** The commit's short name and subject. */
  readonly name: string;
}

/** A work tree of the commit's own, set up as a clone of it is, and taken away again. */
async function checkOut(commit: string): Promise<OtherTree> {
  const name = await git("log", "-1", "--format=%h %s", "--end-of-options", commit);
  const cache = path.join(root, ".cache");
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
  return { folder, name, [Symbol.asyncDispose]: remove };
}

/** What the tree's own bench measured in one round of one scenario with Tulle alone. */
async function benchOf(tree: string, scenario: string, { seconds }: CompareOptions): Promise<unknown> {
  const choice = ["--only", scenario, "--rounds", "1", "--seconds", String(seconds), "--proxies", "Tulle", "--json"];
  const node = path.join(tree, "node_modules", ".bin", "node");
  const output = await program(node, ["bench/main.ts", ...choice], tree, benchTimeoutMs);
  const { results } = JSON.parse(output) as { readonly results: readonly { readonly data: unknown }[] };
  return results[0]!.data;
}

function git(...args: readonly string[]): Promise<string> {
  return program("git", args, root, 60_000).then((text) => text.trim());
}

/** Standard output. @throws when the command does not end with 0 */
async function program(command: string, args: readonly string[], cwd: string, timeoutMs: number): Promise<string> {
  const result = await runCommand(command, args, { cwd, timeoutMs });
  if (result.code !== 0) throw new Error(`${command} ${args.join(" ")} failed: ${lastLines(result)}`);
  return result.stdout;
}

/** The median of each round's ratio, not the ratio of medians: the two of a round have had the same machine. */
export function comparisonTable(pairs: ReadonlyMap<string, readonly Pair[]>, before: string): string {
  const rows = [...pairs].map(([row, measured]) => {
    const ratios = measured.map((pair) => pair.now / pair.before);
    return [
      row,
      median(measured.map((pair) => pair.before)).toFixed(1),
      median(measured.map((pair) => pair.now)).toFixed(1),
      median(ratios).toFixed(3),
      `${Math.min(...ratios).toFixed(2)}–${Math.max(...ratios).toFixed(2)}`,
    ];
  });
  return markdownTable(["CPU µs", before.replaceAll("|", "\\|"), "now", "median ratio", "least–most"], rows);
}
