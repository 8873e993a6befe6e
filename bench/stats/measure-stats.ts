// What a scrape of ten thousand series costs, and what it does to the requests that run meanwhile: 2,000 a second, and
// the p99 of a few seconds with scrapes in them against that of as many seconds before, without.
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { freePorts, type StartedProcess } from "../../tests/tools/processes.ts";
import { runCommand } from "../../tests/tools/run-command.ts";
import { backend, bootstrapYaml } from "../one-proxy/bootstrap.ts";
import { startBackend } from "../one-proxy/backend.ts";
import { http1Request } from "../one-proxy/work.ts";
import { markdownTable } from "../measure/markdown-table.ts";
import { median } from "../measure/median.ts";
import { loadCore, requestsPerSecond, startLoad, startProxy, windowOf } from "../push/loaded-proxy.ts";
import type { Window } from "../push/steady-load.ts";
import type { ScenarioOptions, ScenarioResult } from "../scenario.ts";
import { parse } from "yaml";

const series = 10_000;
/** Prometheus asks each fifteen seconds; in a window of six there would be none. */
const scrapeIntervalMs = 1000;
/** V8 compiles the code of a page in its first scrapes. */
const warmUps = 5;

interface Round {
  readonly quiet: Window;
  readonly scraped: Window;
  readonly scrapeMs: number;
}

interface Measured {
  readonly name: string;
  readonly series: number;
  readonly rounds: Round[];
}

export async function measureStats(options: ScenarioOptions): Promise<ScenarioResult> {
  // The scrapes are this program's: they must not take the proxy's core.
  await runCommand("taskset", ["-a", "-pc", String(loadCore), String(process.pid)], { timeoutMs: 5000 });
  const folder = await mkdtemp(path.join(tmpdir(), "tulle-bench-"));
  await using stack = new AsyncDisposableStack();
  stack.defer(() => rm(folder, { recursive: true, force: true }));
  const [backendPort] = await freePorts(1);
  stack.use(await startBackend(http1Request, folder, `127.0.0.1:${backendPort}`, loadCore));
  const measured: Measured[] = [];
  for (const name of ["Envoy", "Tulle"].filter((one) => options.proxies?.includes(one) ?? true)) {
    // One after the other: the load of one proxy would be a disturbance of the other.
    await using own = new AsyncDisposableStack();
    const clusters = await clustersFor(name, path.join(folder, `${name}-counted`), backendPort!, own);
    measured.push(await measureProxy(name, path.join(folder, name), backendPort!, clusters, options));
  }
  return { markdown: table(measured), data: { requestsPerSecond, seconds: options.seconds, measured } };
}

interface Running {
  readonly url: string;
  readonly listenPort: number;
  readonly process: StartedProcess;
}

/** How many clusters make ten thousand series. */
async function clustersFor(
  name: string,
  folder: string,
  backendPort: number,
  stack: AsyncDisposableStack,
): Promise<number> {
  const counts: number[] = [];
  for (const clusters of [1, 11]) {
    const running = await start(name, path.join(folder, String(clusters)), backendPort, clusters, stack);
    counts.push(await countSeries(running));
    await running.process.stop();
  }
  const ofOneCluster = (counts[1]! - counts[0]!) / 10;
  return Math.ceil((series - counts[0]!) / ofOneCluster);
}

async function countSeries({ url }: Running): Promise<number> {
  const text = await (await fetch(url)).text();
  return text.split("\n").filter((line) => line !== "" && !line.startsWith("#")).length;
}

async function measureProxy(
  name: string,
  folder: string,
  backendPort: number,
  clusters: number,
  options: ScenarioOptions,
): Promise<Measured> {
  await using stack = new AsyncDisposableStack();
  const running = await start(name, folder, backendPort, clusters, stack);
  for (let scrape = 0; scrape < warmUps; scrape++) await scrapeOnce(running);
  const load = stack.use(await startLoad(running.listenPort, options.seconds * 1000));
  await windowOf(load, 0);
  const rounds: Round[] = [];
  for (let round = 1; round <= options.rounds; round++) {
    const quiet = await windowOf(load, 2 * round - 1);
    const scraping = scrapeUntil(running, windowOf(load, 2 * round));
    const { window: scraped, scrapesMs } = await scraping;
    rounds.push({ quiet, scraped, scrapeMs: median(scrapesMs) });
    options.progress(
      `round ${round} ${name}: p99 ${quiet.p99Ms.toFixed(2)} ms, with scrapes ${scraped.p99Ms.toFixed(2)} ms, a scrape ${median(scrapesMs).toFixed(0)} ms`,
    );
  }
  return { name, series: await countSeries(running), rounds };
}

async function scrapeUntil(
  running: Running,
  end: Promise<Window>,
): Promise<{ readonly window: Window; readonly scrapesMs: readonly number[] }> {
  const scrapesMs: number[] = [];
  let under: Promise<void> = Promise.resolve();
  const scrape = (): void => {
    under = scrapeOnce(running).then((ms) => void scrapesMs.push(ms));
  };
  scrape();
  const timer = setInterval(scrape, scrapeIntervalMs);
  const window = await end;
  clearInterval(timer);
  await under;
  return { window, scrapesMs };
}

async function scrapeOnce({ url }: Running): Promise<number> {
  const startMs = performance.now();
  const response = await fetch(url);
  await response.arrayBuffer();
  return performance.now() - startMs;
}

async function start(
  name: string,
  folder: string,
  backendPort: number,
  clusters: number,
  stack: AsyncDisposableStack,
): Promise<Running> {
  await mkdir(folder, { recursive: true });
  const [listenPort, adminPort] = (await freePorts(2)) as [number, number];
  const document = parse(bootstrapYaml({ listenPort, adminPort, backendPort }, path.join(folder, "access.log"))) as {
    static_resources: { clusters: object[] };
  };
  for (let index = 1; index < clusters; index++) {
    document.static_resources.clusters.push({ ...backend(backendPort), name: `outbound|80||service-${index}.shop` });
  }
  const bootstrap = path.join(folder, "bootstrap.json");
  await writeFile(bootstrap, JSON.stringify(document));
  const proxy = await startProxy(name, bootstrap, listenPort, stack);
  return { url: `http://127.0.0.1:${adminPort}/stats/prometheus`, listenPort, process: proxy };
}

function table(measured: readonly Measured[]): string {
  const rows = measured.map(({ name, series: shown, rounds }) => {
    const middle = (of: (round: Round) => number): number => median(rounds.map(of));
    return [
      name,
      String(shown),
      middle(({ scrapeMs }) => scrapeMs).toFixed(0),
      middle(({ quiet }) => quiet.p99Ms).toFixed(2),
      middle(({ scraped }) => scraped.p99Ms).toFixed(2),
      middle(({ quiet, scraped }) => scraped.p99Ms / quiet.p99Ms).toFixed(2),
    ];
  });
  return markdownTable(["proxy", "series", "scrape ms", "p99 ms", "p99 ms with scrapes", "÷ without"], rows);
}
