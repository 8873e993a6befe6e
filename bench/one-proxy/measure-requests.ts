// What a small request costs each proxy.
import { markdownTable } from "../measure/markdown-table.ts";
import { median } from "../measure/median.ts";
import type { ScenarioOptions, ScenarioResult } from "../scenario.ts";
import { cpuRows, type Measured, type Round, runWork } from "./run-work.ts";
import { grpcCall, http1Request, http2Request, type Work } from "./work.ts";

const enoughWarmth = { seconds: 4, requests: 60_000 };

export function measureHttp1(options: ScenarioOptions): Promise<ScenarioResult> {
  return measureRequests(http1Request, options);
}

export function measureHttp2(options: ScenarioOptions): Promise<ScenarioResult> {
  return measureRequests(http2Request, options);
}

export function measureGrpc(options: ScenarioOptions): Promise<ScenarioResult> {
  return measureRequests(grpcCall, options);
}

async function measureRequests(work: Work, options: ScenarioOptions): Promise<ScenarioResult> {
  const measured = await runWork(work, enoughWarmth, options);
  const data = { work, seconds: options.seconds, measured };
  return { markdown: table(work, measured), data, cpu: cpuRows(work.name, measured) };
}

interface Column {
  readonly title: string;
  readonly of: (round: Round) => number;
  readonly digits: number;
}

const columns: readonly Column[] = [
  { title: "CPU µs/request", of: (round) => round.cpuMicrosecondsPerRequest, digits: 1 },
  { title: "requests/s", of: (round) => round.requestsPerSecond, digits: 0 },
  { title: "p50 ms", of: (round) => round.p50Ms, digits: 2 },
  { title: "p99 ms", of: (round) => round.p99Ms, digits: 2 },
  { title: "memory MiB", of: (round) => round.residentBytes / 1024 / 1024, digits: 0 },
];

/** Medians, each with its ratio to Envoy's. How many connections there are to the back end is each proxy's choice. */
function table({ protocol }: Work, measured: readonly Measured[]): string {
  const envoy = measured.find(({ name }) => name === "Envoy");
  const middle = (one: Measured, of: (round: Round) => number) => median(one.rounds.map(of));
  const rows = measured.map((one) => [
    one.name,
    ...columns.flatMap(({ of, digits }) => [
      middle(one, of).toFixed(digits),
      envoy === undefined ? "–" : (middle(one, of) / middle(envoy, of)).toFixed(2),
    ]),
    ...(protocol === "HTTP/2" ? [one.rounds.at(-1)!.upstreamConnections?.toString() ?? "–"] : []),
  ]);
  const titles = ["proxy", ...columns.flatMap(({ title }) => [title, "÷ Envoy"])];
  return markdownTable(protocol === "HTTP/2" ? [...titles, "connections to the host"] : titles, rows);
}
