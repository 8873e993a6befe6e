// Requests through each proxy in turn, several rounds in one run: the proxy has one core for itself, load and back end
// have the other. Client, proxies and back end speak the same version of HTTP.
import { once } from "node:events";
import { mkdir, mkdtemp, rm, truncate } from "node:fs/promises";
import http2 from "node:http2";
import { cpus, tmpdir } from "node:os";
import path from "node:path";
import { freePorts, waitFor, type StartedProcess } from "../../tests/tools/processes.ts";
import { checkAccessLog } from "../measure/check-access-log.ts";
import { eachContestant } from "../measure/each-contestant.ts";
import { markdownTable } from "../measure/markdown-table.ts";
import { median } from "../measure/median.ts";
import { readProcessUsage } from "../measure/process-usage.ts";
import { runH2load } from "../measure/run-h2load.ts";
import { runWrk, type LoadResult } from "../measure/run-wrk.ts";
import { warmUp } from "../measure/warm-up.ts";
import type { CpuRow, ScenarioOptions, ScenarioResult } from "../scenario.ts";
import {
  answerBytes,
  type Contestant,
  contestantFromCommand,
  contestants,
  type Place,
  type Protocol,
  startBackend,
} from "./contestants.ts";

const proxyCore = 0;
const loadCore = 1;
const connections = 64;
/** As many requests at a time, on fewer connections. */
const http2Connections = 8;
const enoughWarmth = { seconds: 4, requests: 60_000 };

interface Round extends LoadResult {
  readonly cpuMicrosecondsPerRequest: number;
  readonly residentBytes: number;
}

interface Measured {
  readonly name: string;
  readonly rounds: Round[];
}

interface Running {
  readonly contestant: Contestant;
  readonly place: Place;
  readonly process: StartedProcess;
}

export function measureHttp1(options: ScenarioOptions): Promise<ScenarioResult> {
  return measureRequests("HTTP/1.1", options);
}

export function measureHttp2(options: ScenarioOptions): Promise<ScenarioResult> {
  return measureRequests("HTTP/2", options);
}

async function measureRequests(protocol: Protocol, options: ScenarioOptions): Promise<ScenarioResult> {
  if (cpus().length < 2) throw new Error("needs two cores: one for the proxy, one for load and back end");
  const folder = await mkdtemp(path.join(tmpdir(), "tulle-bench-"));
  const stack = new AsyncDisposableStack();
  stack.defer(() => rm(folder, { recursive: true, force: true }));
  try {
    const [backendPort] = await freePorts(1);
    stack.use(await startBackend(folder, `127.0.0.1:${backendPort}`, loadCore, protocol));
    await answers(protocol, backendPort!, "the back end");
    const all = [
      ...contestants(options.trees, protocol).filter(({ name }) => options.proxies?.includes(name) ?? true),
      ...options.also.map(({ name, command }) => contestantFromCommand(name, command)),
    ];
    const measured: Measured[] = all.map(({ name }) => ({ name, rounds: [] }));
    const running: Running[] = [];
    for (const contestant of all) running.push(await start(contestant, protocol, folder, backendPort!, stack));
    for (const { place } of running) await warmUp((seconds) => load(place, seconds), enoughWarmth);
    for (let round = 1; round <= options.rounds; round++) {
      await eachContestant(round, [...running.entries()], options, async ([index, one]) => {
        const result = await measureOnce(one, options.seconds);
        measured[index]!.rounds.push(result);
        options.progress(
          `round ${round} ${one.contestant.name}: ${result.cpuMicrosecondsPerRequest.toFixed(1)} µs CPU a request, ${Math.round(result.requestsPerSecond)} requests/s`,
        );
      });
    }
    const data = { connections, answerBytes, seconds: options.seconds, measured };
    return { markdown: table(measured), data, cpu: measured.map(cpuRow) };
  } finally {
    await stack.disposeAsync();
  }
}

async function start(
  contestant: Contestant,
  protocol: Protocol,
  folder: string,
  backendPort: number,
  stack: AsyncDisposableStack,
): Promise<Running> {
  const [listenPort, adminPort] = await freePorts(2);
  const own = path.join(folder, contestant.name);
  await mkdir(own);
  const place: Place = {
    protocol,
    listenPort: listenPort!,
    adminPort: adminPort!,
    backendPort,
    folder: own,
    accessLogFile: path.join(own, "access.log"),
    core: proxyCore,
  };
  const process = stack.use(await contestant.start(place));
  await answers(protocol, place.listenPort, contestant.name, process);
  return { contestant, place, process };
}

/** The same answer from everyone, before anything is measured. */
async function answers(protocol: Protocol, port: number, who: string, process?: StartedProcess): Promise<void> {
  await waitFor(
    async () => {
      if (process?.exit !== undefined) return true;
      const url = `http://127.0.0.1:${port}`;
      const bytes = protocol === "HTTP/2" ? await http2AnswerBytes(url) : await http1AnswerBytes(url);
      return bytes === answerBytes;
    },
    {
      what: `${who} to answer 200 with ${answerBytes} bytes`,
      timeoutMs: 20_000,
      details: () => process?.output() ?? "",
    },
  );
  if (process?.exit !== undefined) throw new Error(`${who} ended at its start:\n${process.output()}`);
}

/** -1 without a good answer, as below. */
async function http1AnswerBytes(url: string): Promise<number> {
  const response = await fetch(`${url}/api/catalog`);
  const { length } = await response.text();
  return response.status === 200 ? length : -1;
}

async function http2AnswerBytes(url: string): Promise<number> {
  const session = http2.connect(url);
  // The stream's own error says as much.
  session.on("error", () => undefined);
  try {
    const stream = session.request({ ":path": "/api/catalog" });
    const [headers] = (await once(stream, "response")) as [http2.IncomingHttpStatusHeader];
    let bytes = 0;
    for await (const chunk of stream) bytes += (chunk as Buffer).length;
    return headers[":status"] === 200 ? bytes : -1;
  } finally {
    session.destroy();
  }
}

function load({ listenPort, protocol, folder }: Place, seconds: number): Promise<LoadResult> {
  const url = `http://127.0.0.1:${listenPort}/api/catalog`;
  return protocol === "HTTP/2"
    ? runH2load({
        url,
        connections: http2Connections,
        streams: connections / http2Connections,
        seconds,
        folder,
        core: loadCore,
      })
    : runWrk({ url, connections, seconds, core: loadCore });
}

async function measureOnce({ contestant, place, process }: Running, seconds: number): Promise<Round> {
  if (contestant.logsRequests) await truncate(place.accessLogFile);
  const before = await readProcessUsage(process.pid);
  const result = await load(place, seconds);
  const after = await readProcessUsage(process.pid);
  if (contestant.logsRequests) await checkAccessLog(contestant.name, place.accessLogFile, result.requests);
  return {
    ...result,
    cpuMicrosecondsPerRequest: ((after.cpuSeconds - before.cpuSeconds) / result.requests) * 1e6,
    residentBytes: after.residentBytes,
  };
}

const columns: readonly { readonly title: string; readonly of: (round: Round) => number; readonly digits: number }[] = [
  { title: "CPU µs/request", of: (round) => round.cpuMicrosecondsPerRequest, digits: 1 },
  { title: "requests/s", of: (round) => round.requestsPerSecond, digits: 0 },
  { title: "p50 ms", of: (round) => round.p50Ms, digits: 2 },
  { title: "p99 ms", of: (round) => round.p99Ms, digits: 2 },
  { title: "memory MiB", of: (round) => round.residentBytes / 1024 / 1024, digits: 0 },
];

function cpuRow({ name, rounds }: Measured): CpuRow {
  const slices = rounds.map((round) => ({ microseconds: round.cpuMicrosecondsPerRequest, units: round.requests }));
  return { work: "a request", contestant: name, slices };
}

/** Medians, each with its ratio to Envoy's. */
function table(measured: readonly Measured[]): string {
  const envoy = measured.find(({ name }) => name === "Envoy");
  const middle = (one: Measured, of: (round: Round) => number) => median(one.rounds.map(of));
  const rows = measured.map((one) => [
    one.name,
    ...columns.flatMap(({ of, digits }) => [
      middle(one, of).toFixed(digits),
      envoy === undefined ? "–" : (middle(one, of) / middle(envoy, of)).toFixed(2),
    ]),
  ]);
  return markdownTable(["proxy", ...columns.flatMap(({ title }) => [title, "÷ Envoy"])], rows);
}
