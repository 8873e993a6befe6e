// TLS handshakes that a sidecar does for its callers: mutual TLS 1.3 as between workloads, from the beginning and with a session
// that is taken up again. Both proxies run the xDS that the control plane's stages make for a STRICT workload.
import path from "node:path";
import { startProcess } from "../../tests/tools/processes.ts";
import { strict } from "../mesh/manifests.ts";
import { loadCore, SidecarPair } from "../mesh/sidecar-pair.ts";
import { markdownTable } from "../measure/markdown-table.ts";
import { median } from "../measure/median.ts";
import { onCore } from "../measure/on-core.ts";
import { readProcessUsage } from "../measure/process-usage.ts";
import type { CpuRows, ScenarioOptions, ScenarioResult } from "../scenario.ts";
import type { HandshakeCount, HandshakeLoad } from "./handshake-load.ts";

const kinds = [
  { name: "Envoy", proxy: "envoy" },
  { name: "Tulle", proxy: "tulle" },
] as const;
const manners = ["full", "resumed"] as const;
type Manner = (typeof manners)[number];
const atATime = 16;
const warmUpSeconds = 2;
const program = path.join(import.meta.dirname, "handshake-load.ts");

interface Measured {
  readonly name: string;
  /** Handshakes for each second of the proxy's CPU time. */
  readonly perCpuSecond: Readonly<Record<Manner, number[]>>;
}

export async function measureHandshakes(options: ScenarioOptions): Promise<ScenarioResult> {
  await using running = new AsyncDisposableStack();
  const measured: Measured[] = [];
  const pairs: SidecarPair[] = [];
  for (const kind of kinds) {
    if (options.proxies?.includes(kind.name) === false) continue;
    pairs.push(running.use(await SidecarPair.start({ ...kind, manifests: strict, headers: [] })));
    measured.push({ name: kind.name, perCpuSecond: { full: [], resumed: [] } });
  }
  for (const pair of pairs) for (const manner of manners) await load(pair, manner, warmUpSeconds);
  for (let round = 1; round <= options.rounds; round++) {
    for (const [index, pair] of pairs.entries()) {
      for (const manner of manners) {
        const rate = await load(pair, manner, Math.ceil(options.seconds / 2));
        measured[index]!.perCpuSecond[manner].push(rate);
        options.progress(`round ${round} ${pair.name}: ${rate.toFixed(0)} ${manner} handshakes per CPU second`);
      }
    }
  }
  return { markdown: table(measured), data: { seconds: options.seconds, atATime, measured } };
}

/** Handshakes per second of CPU time. */
async function load(pair: SidecarPair, manner: Manner, seconds: number): Promise<number> {
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
  return handshakes / (after.cpuSeconds - before.cpuSeconds);
}

export function handshakesCpu(data: unknown): CpuRows {
  const { measured } = data as { readonly measured: readonly Measured[] };
  return Object.fromEntries(
    measured.flatMap(({ perCpuSecond }) =>
      manners.map((manner) => [`handshakes: ${manner}`, 1e6 / median(perCpuSecond[manner])] as const),
    ),
  );
}

function table(measured: readonly Measured[]): string {
  const [first] = measured;
  const rows = measured.map(({ name, perCpuSecond }) => [
    name,
    ...manners.flatMap((manner) => {
      const rate = median(perCpuSecond[manner]);
      return [rate.toFixed(0), (rate / median(first!.perCpuSecond[manner])).toFixed(2)];
    }),
  ]);
  const title = `÷ ${first!.name}`;
  return markdownTable(["proxy", "full handshakes per CPU second", title, "resumed", title], rows);
}
