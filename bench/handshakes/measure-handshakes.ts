// TLS handshakes that a sidecar does for its callers: mutual TLS 1.3 as between workloads, from the beginning and with
// a session that is taken up again. Both proxies run the xDS that the control plane's stages make for a STRICT
// workload.
import path from "node:path";
import { startProcess } from "../../tests/tools/processes.ts";
import { strict } from "../mesh/manifests.ts";
import { sidecarKinds } from "../mesh/sidecar-kinds.ts";
import { loadCore, SidecarPair } from "../mesh/sidecar-pair.ts";
import { http1Request } from "../one-proxy/work.ts";
import { eachContestant } from "../measure/each-contestant.ts";
import { markdownTable } from "../measure/markdown-table.ts";
import { median } from "../measure/median.ts";
import { ofContestant } from "../measure/of-contestant.ts";
import { onCore } from "../measure/on-core.ts";
import { readProcessUsage } from "../measure/process-usage.ts";
import type { CpuRow, CpuSlice, ScenarioOptions, ScenarioResult } from "../scenario.ts";
import type { HandshakeCount, HandshakeLoad } from "./handshake-load.ts";

const manners = ["full", "resumed"] as const;
type Manner = (typeof manners)[number];
const atATime = 16;
const warmUpSeconds = 2;
const program = path.join(import.meta.dirname, "handshake-load.ts");

interface Measured {
  readonly name: string;
  readonly slices: Readonly<Record<Manner, CpuSlice[]>>;
}

export async function measureHandshakes(options: ScenarioOptions): Promise<ScenarioResult> {
  await using running = new AsyncDisposableStack();
  const measured: Measured[] = [];
  const pairs: SidecarPair[] = [];
  for (const kind of sidecarKinds(options)) {
    const { name } = kind;
    const pair = SidecarPair.start({ name, kind, work: http1Request, manifests: strict, headers: [] });
    pairs.push(running.use(await ofContestant(name, pair)));
    measured.push({ name, slices: { full: [], resumed: [] } });
  }
  for (const pair of pairs) for (const manner of manners) await load(pair, manner, warmUpSeconds);
  for (let round = 1; round <= options.rounds; round++) {
    for (const manner of manners) {
      await eachContestant(round, [...pairs.entries()], options, async ([index, pair]) => {
        const slice = await load(pair, manner, Math.ceil(options.seconds / 2));
        measured[index]!.slices[manner].push(slice);
        options.progress(`round ${round} ${pair.name}: ${slice.microseconds.toFixed(0)} µs CPU a ${manner} handshake`);
      });
    }
  }
  const data = { seconds: options.seconds, atATime, measured };
  return { markdown: table(measured), data, cpu: measured.flatMap(cpuRows) };
}

async function load(pair: SidecarPair, manner: Manner, seconds: number): Promise<CpuSlice> {
  const workload = await pair.mesh.authority.issue("shop", "caller");
  const input: HandshakeLoad = { ...pair.serverAddress, ...workload, resumes: manner === "resumed", atATime, seconds };
  const processId = pair.mesh.processId("server");
  const before = await readProcessUsage(processId);
  await using client = await startProcess(...onCore(loadCore, process.execPath, [program]), {
    name: "handshakes",
    input: JSON.stringify(input),
  });
  const exit = await client.exited;
  if (exit.code !== 0) throw new Error(`handshakes with ${pair.name} failed: ${client.output()}`);
  const { handshakes } = JSON.parse(client.stdout()) as HandshakeCount;
  const after = await readProcessUsage(processId);
  return { microseconds: ((after.cpuSeconds - before.cpuSeconds) / handshakes) * 1e6, units: handshakes };
}

function cpuRows({ name, slices }: Measured): readonly CpuRow[] {
  return manners.map((manner) => ({ work: manner, contestant: name, slices: slices[manner] }));
}

/** Handshakes for each second of the proxy's CPU time. */
function rateOf({ slices }: Measured, manner: Manner): number {
  return 1e6 / median(slices[manner].map(({ microseconds }) => microseconds));
}

function table(measured: readonly Measured[]): string {
  const [first] = measured;
  const rows = measured.map((one) => [
    one.name,
    ...manners.flatMap((manner) => {
      const rate = rateOf(one, manner);
      return [rate.toFixed(0), (rate / rateOf(first!, manner)).toFixed(2)];
    }),
  ]);
  const title = `÷ ${first!.name}`;
  return markdownTable(["proxy", "full handshakes per CPU second", title, "resumed", title], rows);
}
