// One full flow on our server and on node-oidc-provider, in turn, each pinned to one core with the load on the other:
// CPU time a flow, flows a second, latency, memory; and what introspection and the key set cost here.
import { eachContestant } from "../measure/each-contestant.ts";
import { ofContestant } from "../measure/of-contestant.ts";
import { median } from "../measure/median.ts";
import { markdownTable } from "../measure/markdown-table.ts";
import { readProcessUsage } from "../measure/process-usage.ts";
import type { CpuRow, ScenarioOptions, ScenarioResult } from "../scenario.ts";
import { ownTree } from "../tree.ts";
import { type Contestant, contestants, peer, type RunningContestant } from "./contestants.ts";
import { basicAuthorization, prepareFlow } from "./flows.ts";
import { type HttpClient, httpClient } from "./http-client.ts";

const connections = 16;
const serverCore = 0;
const warmUpFlows = 1500;
const warmUpCalls = 1000;
/** Different ones, so that no cache of verified tokens could help. */
const introspectedTokens = 500;

const flow = "a code flow";

interface Round {
  readonly count: number;
  readonly cpuMicroseconds: number;
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly residentMib: number;
}

/** A kind of work of one contestant. */
interface Measured {
  readonly contestant: string;
  readonly store: string;
  readonly work: string;
  readonly rounds: Round[];
}

interface Work {
  readonly server: RunningContestant;
  readonly call: () => Promise<unknown>;
  readonly measured: Measured;
}

export async function measureAuthorizationServer(options: ScenarioOptions): Promise<ScenarioResult> {
  await using running = new AsyncDisposableStack();
  const works: Work[] = [];
  for (const contestant of contestants(options)) {
    const { name, store } = contestant;
    const server = running.use(await ofContestant(name, contestant.start(serverCore)));
    const client = httpClient(Number(new URL(server.issuer).port), connections);
    running.defer(() => client.close());
    for (const [work, call] of await ofContestant(name, prepareWork(contestant, server, client)))
      works.push({ server, call, measured: { contestant: name, store, work, rounds: [] } });
  }
  const kinds = [...new Set(works.map(({ measured }) => measured.work))];
  for (let round = 1; round <= options.rounds; round += 1) {
    for (const kind of kinds) {
      const same = works.filter(({ measured }) => measured.work === kind);
      await eachContestant(round, same, options, async ({ server, call, measured }) => {
        const result = await measureOnce(server, call, options.seconds);
        measured.rounds.push(result);
        options.progress(
          `round ${round} ${measured.contestant}: ${result.cpuMicroseconds.toFixed(0)} µs CPU for ${measured.work}`,
        );
      });
    }
  }
  const measured = works.map((work) => work.measured);
  return { markdown: report(measured), data: { seconds: options.seconds, measured }, cpu: measured.map(cpuRow) };
}

function cpuRow({ contestant, work, rounds }: Measured): CpuRow {
  const slices = rounds.map(({ cpuMicroseconds, count }) => ({ microseconds: cpuMicroseconds, units: count }));
  return { work, contestant, slices };
}

/** What the contestant is asked for, each kind warmed up. */
async function prepareWork(
  contestant: Contestant,
  server: RunningContestant,
  client: HttpClient,
): Promise<ReadonlyMap<string, () => Promise<unknown>>> {
  const { run } = await prepareFlow(contestant, server, client);
  await repeat(warmUpFlows, run);
  if (!contestant.isTulle) return new Map([[flow, run]]);
  const tokens: string[] = [];
  await repeat(introspectedTokens, async () => void tokens.push(await run()));
  const headers = { "content-type": "application/x-www-form-urlencoded", authorization: basicAuthorization };
  let next = 0;
  const introspect = async (): Promise<void> => {
    const answer = await client.send("POST", "/introspect", headers, `token=${tokens[(next += 1) % tokens.length]}`);
    if (!answer.body.includes('"active":true')) throw new Error(`introspection answered ${answer.body}`);
  };
  const readKeys = async (): Promise<void> => {
    const answer = await client.send("GET", "/jwks", {});
    if (answer.status !== 200) throw new Error(`the key set answered ${answer.status}`);
  };
  for (const call of [introspect, readKeys]) await repeat(warmUpCalls, call);
  return new Map<string, () => Promise<unknown>>([
    [flow, run],
    ["an introspection", introspect],
    ["the key set", readKeys],
  ]);
}

async function repeat(count: number, call: () => Promise<unknown>): Promise<void> {
  let left = count;
  await inLanes(
    () => (left -= 1) >= 0,
    async () => void (await call()),
  );
}

async function inLanes(goesOn: () => boolean, work: () => Promise<void>): Promise<void> {
  const lane = async (): Promise<void> => {
    while (goesOn()) await work();
  };
  await Promise.all(Array.from({ length: connections }, lane));
}

async function measureOnce(server: RunningContestant, call: () => Promise<unknown>, seconds: number): Promise<Round> {
  const latencies: number[] = [];
  const before = await readProcessUsage(server.process.pid);
  const startedMs = performance.now();
  const endMs = startedMs + seconds * 1000;
  await inLanes(
    () => performance.now() < endMs,
    async () => {
      const begun = performance.now();
      await call();
      latencies.push(performance.now() - begun);
    },
  );
  const took = (performance.now() - startedMs) / 1000;
  const after = await readProcessUsage(server.process.pid);
  latencies.sort((a, b) => a - b);
  return {
    count: latencies.length,
    cpuMicroseconds: ((after.cpuSeconds - before.cpuSeconds) / latencies.length) * 1e6,
    perSecond: latencies.length / took,
    p50Ms: latencies[Math.floor(latencies.length * 0.5)]!,
    p99Ms: latencies[Math.floor(latencies.length * 0.99)]!,
    residentMib: after.residentBytes / 1024 / 1024,
  };
}

function report(all: readonly Measured[]): string {
  const rows = all
    .filter(({ work }) => work === flow)
    .map((one) => ({ ...one, ...medians(one) }))
    .map((one) => [
      `${one.contestant}, ${one.store}`,
      one.cpuMicroseconds.toFixed(0),
      one.perSecond.toFixed(0),
      one.p50Ms.toFixed(1),
      one.p99Ms.toFixed(1),
      one.residentMib.toFixed(0),
    ]);
  const flowsOf = (name: string): Measured | undefined =>
    all.find(({ contestant, work }) => contestant === name && work === flow);
  const [peers, ours] = [flowsOf(peer.name), flowsOf(ownTree.name)];
  if (peers !== undefined && ours !== undefined) rows.push(ratioRow(medians(peers), medians(ours)));
  const calls = all
    .filter(({ work }) => work !== flow)
    .map((one) => `${one.contestant}: ${one.work}, ${medians(one).cpuMicroseconds.toFixed(0)} µs of CPU.`);
  return [markdownTable(["one flow", "CPU µs", "flows/s", "p50 ms", "p99 ms", "MiB"], rows), "", ...calls].join("\n");
}

function ratioRow(peers: Omit<Round, "count">, ours: Omit<Round, "count">): string[] {
  return [
    "ratio",
    (ours.cpuMicroseconds / peers.cpuMicroseconds).toFixed(2),
    (ours.perSecond / peers.perSecond).toFixed(2),
    (ours.p50Ms / peers.p50Ms).toFixed(2),
    `${(ours.p99Ms / peers.p50Ms).toFixed(2)} of its p50`,
    (ours.residentMib / peers.residentMib).toFixed(2),
  ];
}

function medians({ rounds }: Measured): Omit<Round, "count"> {
  const middle = (of: (round: Round) => number): number => median(rounds.map(of));
  return {
    cpuMicroseconds: middle((round) => round.cpuMicroseconds),
    perSecond: middle((round) => round.perSecond),
    p50Ms: middle((round) => round.p50Ms),
    p99Ms: middle((round) => round.p99Ms),
    residentMib: middle((round) => round.residentMib),
  };
}
