// What the sample shop takes while nobody asks it anything: memory of a sidecar, CPU and wake-ups of every process.
// Once with Tulle's proxy and once with Envoy, each with the agent that it needs.
import { readdir, readFile } from "node:fs/promises";
import { setTimeout as delay } from "node:timers/promises";
import { envoyPath } from "../../tests/tools/envoy-path.ts";
import { freePort, startProcess } from "../../tests/tools/processes.ts";
import { markdownTable } from "../measure/markdown-table.ts";
import { median } from "../measure/median.ts";
import { processCpuSeconds, withDescendants } from "../measure/process-usage.ts";
import type { ScenarioOptions, ScenarioResult } from "../scenario.ts";
import { copyShop, inOwnFolder, upCommand } from "../up-to-ready.ts";

/** From Ready on: memory of the start is given back meanwhile. */
const settleMs = 45_000;
const windowMs = 30_000;
/** Memory and CPU at rest vary little from run to run. */
const maxRounds = 3;

const kinds = ["tulle", "envoy"] as const;
type Kind = (typeof kinds)[number];
const parts = ["sidecar", "control plane", "tulle up", "applications"] as const;
type Part = (typeof parts)[number];

/** Of the processes of a part, or of one sidecar in the middle. */
interface AtRest {
  readonly residentKib: number;
  readonly proportionalKib: number;
  readonly privateKib: number;
  readonly cpuMsPerSecond: number;
  readonly wakeUpsPerSecond: number;
}

type Round = Readonly<Record<Part | "all", AtRest>>;

export async function measureRest(options: ScenarioOptions): Promise<ScenarioResult> {
  const measured = new Map<Kind, Round[]>(kinds.map((kind) => [kind, []]));
  for (let round = 1; round <= Math.min(options.rounds, maxRounds); round++) {
    for (const [kind, rounds] of measured) {
      const result = await measureOnce(kind);
      rounds.push(result);
      const { sidecar, all } = result;
      options.progress(
        `round ${round} ${kind}: a sidecar ${mib(sidecar.privateKib)} MiB private, all ${all.cpuMsPerSecond.toFixed(1)} ms a second`,
      );
    }
  }
  const rows = [...measured].flatMap(([kind, rounds]) =>
    [...parts, "all" as const].map((part) => row(kind, part, rounds)),
  );
  const header = ["with", "", "RSS MiB", "PSS MiB", "private MiB", "CPU ms a second", "wake-ups a second"];
  return { markdown: markdownTable(header, rows), data: Object.fromEntries(measured) };
}

function row(kind: Kind, part: Part | "all", rounds: readonly Round[]): string[] {
  const middle = (of: (rest: AtRest) => number): number => median(rounds.map((round) => of(round[part])));
  return [
    kind,
    part === "sidecar" ? "a sidecar" : part,
    mib(middle(({ residentKib }) => residentKib)),
    mib(middle(({ proportionalKib }) => proportionalKib)),
    mib(middle(({ privateKib }) => privateKib)),
    middle(({ cpuMsPerSecond }) => cpuMsPerSecond).toFixed(1),
    middle(({ wakeUpsPerSecond }) => wakeUpsPerSecond).toFixed(1),
  ];
}

function mib(kib: number): string {
  return (kib / 1024).toFixed(1);
}

function measureOnce(kind: Kind): Promise<Round> {
  return inOwnFolder(copyShop, async (folder) => {
    const publish = `${await freePort()}:8080,${await freePort()}:8443`;
    const args = [...upCommand(folder), "--publish", publish, "--proxy", kind];
    const env = { ...process.env, TULLE_ENVOY: await envoyPath() };
    await using up = await startProcess(process.execPath, args, { name: "tulle up", env });
    await up.waitForOutput(/^Ready\b/m, { timeoutMs: 120_000 });
    await delay(settleMs);
    const programs = await programsOf(up.pid);
    const before = await Promise.all(programs.map(usageOf));
    await delay(windowMs);
    const after = await Promise.all(programs.map(usageOf));
    const rests = programs.map(({ part }, index) => ({ part, rest: between(before[index]!, after[index]!) }));
    const of = (part: Part): readonly AtRest[] => rests.filter((each) => each.part === part).map(({ rest }) => rest);
    return {
      sidecar: inTheMiddle(of("sidecar")),
      "control plane": sum(of("control plane")),
      "tulle up": sum(of("tulle up")),
      applications: sum(of("applications")),
      all: sum(rests.map(({ rest }) => rest)),
    };
  });
}

interface Program {
  readonly part: Part;
  /** With what it has started. */
  readonly processIds: readonly number[];
}

async function programsOf(up: number): Promise<readonly Program[]> {
  const [, ...started] = await withDescendants(up);
  const lines = new Map<number, string>();
  for (const id of started) lines.set(id, await readFile(`/proc/${id}/cmdline`, "utf8").catch(() => ""));
  const programs: Program[] = [{ part: "tulle up", processIds: [up] }];
  const owned = new Set<number>();
  for (const [id, line] of lines) {
    if (owned.has(id)) continue;
    const part = partOf(line);
    const processIds = part === "sidecar" ? await withDescendants(id) : [id];
    for (const each of processIds) owned.add(each);
    programs.push({ part, processIds });
  }
  return programs;
}

function partOf(commandLine: string): Part {
  // A shell beside each program ends it with its supervisor, and names it.
  if (commandLine.startsWith("/bin/sh")) return "applications";
  const words = commandLine.split("\0");
  if (words.includes("control-plane")) return "control plane";
  return words.includes("agent") ? "sidecar" : "applications";
}

interface Usage extends Omit<AtRest, "cpuMsPerSecond" | "wakeUpsPerSecond"> {
  readonly cpuSeconds: number;
  readonly wakeUps: number;
  readonly atMs: number;
}

async function usageOf({ processIds }: Program): Promise<Usage> {
  const each = await Promise.all(processIds.map(usageOfProcess));
  const total = (of: (usage: Omit<Usage, "atMs">) => number): number => each.reduce((all, one) => all + of(one), 0);
  return {
    residentKib: total(({ residentKib }) => residentKib),
    proportionalKib: total(({ proportionalKib }) => proportionalKib),
    privateKib: total(({ privateKib }) => privateKib),
    cpuSeconds: total(({ cpuSeconds }) => cpuSeconds),
    wakeUps: total(({ wakeUps }) => wakeUps),
    atMs: performance.now(),
  };
}

async function usageOfProcess(id: number): Promise<Omit<Usage, "atMs">> {
  const maps = await readFile(`/proc/${id}/smaps_rollup`, "utf8");
  const kib = (name: string): number => Number(new RegExp(`^${name}:\\s+(\\d+)`, "m").exec(maps)?.[1] ?? 0);
  let wakeUps = 0;
  for (const thread of await readdir(`/proc/${id}/task`)) {
    // A thread may end between the listing and the reading.
    const status = await readFile(`/proc/${id}/task/${thread}/status`, "utf8").catch(() => "");
    wakeUps += Number(/^voluntary_ctxt_switches:\s+(\d+)/m.exec(status)?.[1] ?? 0);
  }
  return {
    residentKib: kib("Rss"),
    proportionalKib: kib("Pss"),
    privateKib: kib("Private_Clean") + kib("Private_Dirty"),
    cpuSeconds: await processCpuSeconds(id),
    wakeUps,
  };
}

function between(before: Usage, after: Usage): AtRest {
  const seconds = (after.atMs - before.atMs) / 1000;
  return {
    residentKib: after.residentKib,
    proportionalKib: after.proportionalKib,
    privateKib: after.privateKib,
    cpuMsPerSecond: ((after.cpuSeconds - before.cpuSeconds) * 1000) / seconds,
    wakeUpsPerSecond: (after.wakeUps - before.wakeUps) / seconds,
  };
}

const fields = ["residentKib", "proportionalKib", "privateKib", "cpuMsPerSecond", "wakeUpsPerSecond"] as const;

function eachField(of: (field: (typeof fields)[number]) => number): AtRest {
  return Object.fromEntries(fields.map((field) => [field, of(field)])) as unknown as AtRest;
}

function sum(rests: readonly AtRest[]): AtRest {
  return eachField((field) => rests.reduce((all, rest) => all + rest[field], 0));
}

function inTheMiddle(rests: readonly AtRest[]): AtRest {
  return eachField((field) => median(rests.map((rest) => rest[field])));
}
