// Memory of a proxy that holds ten thousand idle connections, each of which has made one request: what it has then, and
// what the connections added. A new process each round, warmed by load first, so that only connections
// are counted.
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { freePorts, startProcess, waitFor } from "../../tests/tools/processes.ts";
import { isAnswered, startBackend } from "../one-proxy/backend.ts";
import { contestants, type Contestant, type Place } from "../one-proxy/contestants.ts";
import { http1Request, http2Request, runLoad, type Work } from "../one-proxy/work.ts";
import { markdownTable } from "../measure/markdown-table.ts";
import { median } from "../measure/median.ts";
import { onCore } from "../measure/on-core.ts";
import { readProcessUsage } from "../measure/process-usage.ts";
import type { ScenarioOptions, ScenarioResult } from "../scenario.ts";

const proxyCore = 0;
const loadCore = 1;
const idleConnections = 10_000;
const warmUpSeconds = 2;
/** After the last request; collectors and allocators settle meanwhile, as they would in an idle hour. */
const settleMs = 2000;
/** Memory varies little from run to run. */
const maxRounds = 3;
const program = path.join(import.meta.dirname, "hold-connections.ts");

interface Round {
  readonly beforeBytes: number;
  readonly holdingBytes: number;
}

interface Measured {
  readonly name: string;
  readonly rounds: Round[];
}

export function measureIdle(options: ScenarioOptions): Promise<ScenarioResult> {
  return measureConnections(http1Request, options);
}

export function measureIdleHttp2(options: ScenarioOptions): Promise<ScenarioResult> {
  return measureConnections(http2Request, options);
}

async function measureConnections(work: Work, options: ScenarioOptions): Promise<ScenarioResult> {
  const folder = await mkdtemp(path.join(tmpdir(), "tulle-bench-"));
  await using stack = new AsyncDisposableStack();
  stack.defer(() => rm(folder, { recursive: true, force: true }));
  const [backendPort] = await freePorts(1);
  stack.use(await startBackend(work, folder, `127.0.0.1:${backendPort}`, loadCore));
  const chosen = contestants(options.trees, work.protocol).filter(({ name }) =>
    (options.proxies ?? ["Envoy", "Tulle"]).includes(name),
  );
  const measured: Measured[] = chosen.map(({ name }) => ({ name, rounds: [] }));
  for (let round = 1; round <= Math.min(options.rounds, maxRounds); round++) {
    for (const [index, contestant] of chosen.entries()) {
      const own = path.join(folder, `${contestant.name}-${round}`);
      await mkdir(own);
      const result = await measureOnce(work, contestant, own, backendPort!);
      measured[index]!.rounds.push(result);
      options.progress(
        `round ${round} ${contestant.name}: ${mib(result.beforeBytes)} → ${mib(result.holdingBytes)} MiB`,
      );
    }
  }
  return { markdown: table(measured), data: { idleConnections, measured } };
}

async function measureOnce(work: Work, contestant: Contestant, folder: string, backendPort: number): Promise<Round> {
  const [listenPort, adminPort] = await freePorts(2);
  const place: Place = {
    protocol: work.protocol,
    listenPort: listenPort!,
    adminPort: adminPort!,
    backendPort,
    folder,
    accessLogFile: path.join(folder, "access.log"),
    core: proxyCore,
  };
  await using proxy = await contestant.start(place);
  const origin = `http://127.0.0.1:${place.listenPort}`;
  await waitFor(async () => proxy.exit !== undefined || (await isAnswered(work, origin)), {
    what: `${contestant.name} to answer`,
    timeoutMs: 20_000,
    details: () => proxy.output(),
  });
  if (proxy.exit !== undefined) throw new Error(`${contestant.name} ended at its start:\n${proxy.output()}`);
  await runLoad(work, { origin, seconds: warmUpSeconds, folder, core: loadCore });
  await delay(settleMs);
  const before = await readProcessUsage(proxy.pid);
  await using holder = await startProcess(
    ...onCore(loadCore, process.execPath, [program, work.protocol, String(place.listenPort), String(idleConnections)]),
    { name: "connections" },
  );
  await holder.waitForOutput(/^held$/m, { timeoutMs: 60_000 });
  await delay(settleMs);
  const holding = await readProcessUsage(proxy.pid);
  return { beforeBytes: before.residentBytes, holdingBytes: holding.residentBytes };
}

function mib(bytes: number): string {
  return (bytes / 1024 / 1024).toFixed(0);
}

function table(measured: readonly Measured[]): string {
  const envoy = measured.find(({ name }) => name === "Envoy") ?? measured[0]!;
  const grown = ({ beforeBytes, holdingBytes }: Round): number => holdingBytes - beforeBytes;
  const middle = ({ rounds }: Measured, of: (round: Round) => number): number => median(rounds.map(of));
  const rows = measured.map((one) => [
    one.name,
    mib(middle(one, ({ beforeBytes }) => beforeBytes)),
    mib(middle(one, ({ holdingBytes }) => holdingBytes)),
    (middle(one, (round) => round.holdingBytes) / middle(envoy, (round) => round.holdingBytes)).toFixed(2),
    (middle(one, grown) / idleConnections / 1024).toFixed(1),
    (middle(one, grown) / middle(envoy, grown)).toFixed(2),
  ]);
  return markdownTable(["proxy", "before MiB", "holding MiB", "÷ Envoy", "KiB a connection", "÷ Envoy"], rows);
}
