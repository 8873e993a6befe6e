// One full flow on our server and on node-oidc-provider, in turn, each pinned to one core with the load on the other:
// CPU time a flow, flows a second, latency, memory; and what introspection and the key set cost here.
import { median } from "../measure/median.ts";
import { markdownTable } from "../measure/markdown-table.ts";
import { readProcessUsage } from "../measure/process-usage.ts";
import type { CpuRows } from "../scenario.ts";
import type { Contestant, RunningContestant } from "./contestants.ts";
import { contestants } from "./contestants.ts";
import { basicAuthorization, prepareFlow } from "./flows.ts";
import type { HttpClient } from "./http-client.ts";
import { httpClient } from "./http-client.ts";

const connections = 16;
const serverCore = 0;
const warmUpFlows = 1500;
const flowsPerRound = 6000;
const callsPerRound = 20_000;

export interface FlowMeasurement {
  readonly cpuMicrosecondsPerFlow: number;
  readonly flowsPerSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly residentMib: number;
}

export interface BenchOptions {
  readonly rounds: number;
  readonly progress: (text: string) => void;
}

export interface AuthorizationServerResult {
  readonly markdown: string;
  readonly data: Readonly<Record<string, FlowMeasurement>>;
  readonly callsPerCpuSecond: Readonly<Record<string, number>>;
}

export async function measureAuthorizationServer(options: BenchOptions): Promise<AuthorizationServerResult> {
  const rounds = new Map<string, FlowMeasurement[]>(contestants.map(({ name }) => [name, []]));
  const calls = { introspection: [] as number[], jwks: [] as number[] };
  for (let round = 1; round <= options.rounds; round += 1) {
    for (const contestant of contestants) {
      const running = await contestant.start(serverCore);
      const client = httpClient(Number(new URL(running.issuer).port), connections);
      try {
        const measured = await measureFlows(contestant, running, client);
        rounds.get(contestant.name)!.push(measured);
        options.progress(`round ${round}, ${contestant.name}: ${measured.cpuMicrosecondsPerFlow.toFixed(0)} µs a flow`);
        if (contestant.name.startsWith("Tulle")) {
          calls.introspection.push(await measureIntrospection(contestant, running, client));
          calls.jwks.push(await measureCalls(running, () => client.send("GET", "/jwks", {})));
        }
      } finally {
        client.close();
        await running.stop();
      }
    }
  }
  return report(rounds, { introspection: median(calls.introspection), jwks: median(calls.jwks) });
}

export function authorizationServerCpu(data: unknown): CpuRows {
  const ours = Object.entries(data as AuthorizationServerResult["data"]).filter(([name]) => name.startsWith("Tulle"));
  return Object.fromEntries(ours.map(([, one]) => ["authorization server: a code flow", one.cpuMicrosecondsPerFlow]));
}

async function measureFlows(
  contestant: Contestant,
  running: RunningContestant,
  client: HttpClient,
): Promise<FlowMeasurement> {
  const flow = await prepareFlow(contestant, running, client);
  await repeat(warmUpFlows, async () => void (await flow.run()));
  const before = await readProcessUsage(running.process.pid);
  const started = performance.now();
  const latencies: number[] = [];
  await repeat(flowsPerRound, async () => {
    const begun = performance.now();
    await flow.run();
    latencies.push(performance.now() - begun);
  });
  const seconds = (performance.now() - started) / 1000;
  const after = await readProcessUsage(running.process.pid);
  latencies.sort((a, b) => a - b);
  return {
    cpuMicrosecondsPerFlow: ((after.cpuSeconds - before.cpuSeconds) / flowsPerRound) * 1e6,
    flowsPerSecond: flowsPerRound / seconds,
    p50Ms: latencies[Math.floor(latencies.length * 0.5)]!,
    p99Ms: latencies[Math.floor(latencies.length * 0.99)]!,
    residentMib: after.residentBytes / 1024 / 1024,
  };
}

async function repeat(count: number, work: () => Promise<void>): Promise<void> {
  let left = count;
  const lane = async (): Promise<void> => {
    while (left > 0) {
      left -= 1;
      await work();
    }
  };
  await Promise.all(Array.from({ length: connections }, lane));
}

/** Different tokens, so that no cache of verified ones could help. */
async function measureIntrospection(
  contestant: Contestant,
  running: RunningContestant,
  client: HttpClient,
): Promise<number> {
  const flow = await prepareFlow(contestant, running, client);
  const tokens: string[] = [];
  await repeat(500, async () => void tokens.push(await flow.run()));
  const headers = { "content-type": "application/x-www-form-urlencoded", authorization: basicAuthorization };
  let next = 0;
  return measureCalls(running, async () => {
    const answer = await client.send("POST", "/introspect", headers, `token=${tokens[(next += 1) % tokens.length]}`);
    if (!answer.body.includes('"active":true')) throw new Error(`introspection answered ${answer.body}`);
  });
}

async function measureCalls(running: RunningContestant, call: () => Promise<unknown>): Promise<number> {
  await repeat(1000, async () => void (await call()));
  const before = await readProcessUsage(running.process.pid);
  await repeat(callsPerRound, async () => void (await call()));
  const after = await readProcessUsage(running.process.pid);
  return callsPerRound / (after.cpuSeconds - before.cpuSeconds);
}

function report(
  rounds: ReadonlyMap<string, readonly FlowMeasurement[]>,
  callsPerCpuSecond: Readonly<Record<string, number>>,
): AuthorizationServerResult {
  const middle = (measured: readonly FlowMeasurement[], of: (one: FlowMeasurement) => number): number =>
    median(measured.map(of));
  const data: Record<string, FlowMeasurement> = {};
  for (const [name, measured] of rounds) {
    data[name] = {
      cpuMicrosecondsPerFlow: middle(measured, (one) => one.cpuMicrosecondsPerFlow),
      flowsPerSecond: middle(measured, (one) => one.flowsPerSecond),
      p50Ms: middle(measured, (one) => one.p50Ms),
      p99Ms: middle(measured, (one) => one.p99Ms),
      residentMib: middle(measured, (one) => one.residentMib),
    };
  }
  const [peer, ours] = contestants.map(({ name }) => data[name]!) as [FlowMeasurement, FlowMeasurement];
  const rows = Object.entries(data).map(([name, one]) => [
    name,
    one.cpuMicrosecondsPerFlow.toFixed(0),
    one.flowsPerSecond.toFixed(0),
    one.p50Ms.toFixed(1),
    one.p99Ms.toFixed(1),
    one.residentMib.toFixed(0),
  ]);
  rows.push([
    "ratio",
    (ours.cpuMicrosecondsPerFlow / peer.cpuMicrosecondsPerFlow).toFixed(2),
    (ours.flowsPerSecond / peer.flowsPerSecond).toFixed(2),
    (ours.p50Ms / peer.p50Ms).toFixed(2),
    `${(ours.p99Ms / peer.p50Ms).toFixed(2)} of its p50`,
    (ours.residentMib / peer.residentMib).toFixed(2),
  ]);
  const table = markdownTable(["one flow", "CPU µs", "flows/s", "p50 ms", "p99 ms", "MiB"], rows);
  const calls = Object.entries(callsPerCpuSecond)
    .map(([name, value]) => `${name} ${value.toFixed(0)} a second of CPU`)
    .join(", ");
  return { markdown: `${table}\n\nTulle: ${calls}.`, data, callsPerCpuSecond };
}
