// The same work through each proxy in turn, several rounds in one run: the proxy has one core for itself, load and back
// end have the other.
import { mkdir, mkdtemp, rm, truncate } from "node:fs/promises";
import { cpus, tmpdir } from "node:os";
import path from "node:path";
import { freePorts, waitFor, type StartedProcess } from "../../tests/tools/processes.ts";
import { checkAccessLog } from "../measure/check-access-log.ts";
import { eachContestant } from "../measure/each-contestant.ts";
import { readProcessUsage } from "../measure/process-usage.ts";
import type { LoadResult } from "../measure/run-wrk.ts";
import { warmUp } from "../measure/warm-up.ts";
import type { CpuRow, ScenarioOptions } from "../scenario.ts";
import { isAnswered, startBackend } from "./backend.ts";
import { cluster } from "./bootstrap.ts";
import { type Contestant, contestantFromCommand, contestants, type Place } from "./contestants.ts";
import { runLoad, type Work } from "./work.ts";

const proxyCore = 0;
const loadCore = 1;

export interface Round extends LoadResult {
  readonly cpuMicrosecondsPerRequest: number;
  /** Of it: outside of the kernel. */
  readonly userMicrosecondsPerRequest: number;
  readonly residentBytes: number;
  /** To the back end, after the load; undefined for a program that does not tell. */
  readonly upstreamConnections: number | undefined;
}

export interface Measured {
  readonly name: string;
  readonly rounds: readonly Round[];
}

export interface Warmth {
  readonly seconds: number;
  readonly requests: number;
}

interface Running {
  readonly contestant: Contestant;
  readonly place: Place;
  readonly process: StartedProcess;
}

/** `all`: who takes part; those of the command line when missing. */
export async function runWork(
  work: Work,
  warmth: Warmth,
  options: ScenarioOptions,
  all: readonly Contestant[] = contestantsOf(work, options),
): Promise<readonly Measured[]> {
  if (cpus().length < 2) throw new Error("needs two cores: one for the proxy, one for load and back end");
  const folder = await mkdtemp(path.join(tmpdir(), "tulle-bench-"));
  await using stack = new AsyncDisposableStack();
  stack.defer(() => rm(folder, { recursive: true, force: true }));
  const [backendPort] = await freePorts(1);
  const backend = stack.use(await startBackend(work, folder, `127.0.0.1:${backendPort}`, loadCore));
  await untilAnswered(work, backendPort!, backend, "the back end");
  const measured = all.map(({ name }) => ({ name, rounds: [] as Round[] }));
  const running: Running[] = [];
  for (const contestant of all) running.push(await start(contestant, work, folder, backendPort!, stack));
  for (const { place } of running) await warmUp((seconds) => load(work, place, seconds), warmth);
  for (let round = 1; round <= options.rounds; round++) {
    await eachContestant(round, [...running.entries()], options, async ([index, one]) => {
      const result = await measureOnce(work, one, options.seconds);
      measured[index]!.rounds.push(result);
      options.progress(
        `round ${round} ${one.contestant.name}: ${result.cpuMicrosecondsPerRequest.toFixed(1)} µs CPU for ${work.name}, ${Math.round(result.requestsPerSecond)}/s`,
      );
    });
  }
  return measured;
}

function contestantsOf(work: Work, { trees, proxies, also }: ScenarioOptions): readonly Contestant[] {
  return [
    ...contestants(trees, work.protocol).filter(({ name }) => proxies?.includes(name) ?? true),
    ...also.map(({ name, command }) => contestantFromCommand(name, command)),
  ];
}

async function start(
  contestant: Contestant,
  work: Work,
  folder: string,
  backendPort: number,
  stack: AsyncDisposableStack,
): Promise<Running> {
  const [listenPort, adminPort] = await freePorts(2);
  const own = path.join(folder, contestant.name);
  await mkdir(own);
  const place: Place = {
    protocol: work.protocol,
    listenPort: listenPort!,
    adminPort: adminPort!,
    backendPort,
    folder: own,
    accessLogFile: path.join(own, "access.log"),
    core: proxyCore,
  };
  const process = stack.use(await contestant.start(place));
  await untilAnswered(work, place.listenPort, process, contestant.name);
  return { contestant, place, process };
}

/** The same answer from everyone, before anything is measured. */
async function untilAnswered(work: Work, port: number, process: StartedProcess, who: string): Promise<void> {
  await waitFor(async () => process.exit !== undefined || (await isAnswered(work, `http://127.0.0.1:${port}`)), {
    what: `${who} to give the whole answer`,
    timeoutMs: 20_000,
    details: () => process.output(),
  });
  if (process.exit !== undefined) throw new Error(`${who} ended at its start:\n${process.output()}`);
}

function load(work: Work, { listenPort, folder }: Place, seconds: number): Promise<LoadResult> {
  return runLoad(work, { origin: `http://127.0.0.1:${listenPort}`, seconds, folder, core: loadCore });
}

async function measureOnce(work: Work, { contestant, place, process }: Running, seconds: number): Promise<Round> {
  if (contestant.logsRequests) await truncate(place.accessLogFile);
  const before = await readProcessUsage(process.pid);
  const result = await load(work, place, seconds);
  const after = await readProcessUsage(process.pid);
  if (contestant.logsRequests) await checkAccessLog(contestant.name, place.accessLogFile, result.requests);
  return {
    ...result,
    cpuMicrosecondsPerRequest: ((after.cpuSeconds - before.cpuSeconds) / result.requests) * 1e6,
    userMicrosecondsPerRequest: ((after.userSeconds - before.userSeconds) / result.requests) * 1e6,
    residentBytes: after.residentBytes,
    upstreamConnections: contestant.hasAdmin ? await upstreamConnections(place) : undefined,
  };
}

async function upstreamConnections({ adminPort }: Place): Promise<number> {
  const stats = await fetch(`http://127.0.0.1:${adminPort}/stats?filter=upstream_cx_active`);
  return Number(
    (await stats.text())
      .split("\n")
      .find((line) => line.startsWith(`cluster.${cluster}.`))
      ?.split(": ")[1],
  );
}

/** `unitsOf` a request: what is compared is the cost of one. */
export function cpuRows(work: string, measured: readonly Measured[], unitsOf = 1): readonly CpuRow[] {
  return measured.map(({ name, rounds }) => ({
    work,
    contestant: name,
    slices: rounds.map(({ cpuMicrosecondsPerRequest, requests }) => ({
      microseconds: cpuMicrosecondsPerRequest / unitsOf,
      units: requests * unitsOf,
    })),
  }));
}
