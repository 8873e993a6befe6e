// What an answer to a DNS question costs the agent: about a name of the mesh, and one that is passed on to another name
// server of the machine.
import { createSocket } from "node:dgram";
import { once } from "node:events";
import path from "node:path";
import { startProcess } from "../../tests/tools/processes.ts";
import { markdownTable } from "../measure/markdown-table.ts";
import { median } from "../measure/median.ts";
import { onCore } from "../measure/on-core.ts";
import { readProcessUsage } from "../measure/process-usage.ts";
import type { ScenarioOptions, ScenarioResult } from "../scenario.ts";
import { loadNameServer } from "./dns-load.ts";
import { addressAnswer, type QuestionKind } from "./questions.ts";

const kinds = ["mesh", "passed on"] as const satisfies readonly QuestionKind[];
const proxyCore = 0;
const warmUpSeconds = 2;
const program = path.join(import.meta.dirname, "name-server.ts");

export async function measureDns({ rounds, seconds, progress }: ScenarioOptions): Promise<ScenarioResult> {
  await using running = new AsyncDisposableStack();
  const upstream = createSocket("udp4");
  upstream.on("message", (query, { port, address }) => upstream.send(addressAnswer(query), port, address));
  upstream.bind(0, "127.0.0.1");
  await once(upstream, "listening");
  running.defer(() => void upstream.close());
  const command = onCore(proxyCore, process.execPath, [program, String(upstream.address().port)]);
  const server = running.use(await startProcess(...command, { name: "the name server" }));
  const [, port] = await server.waitForOutput(/listening (\d+)/);

  const load = async (kind: QuestionKind, loadSeconds: number): Promise<number> => {
    const before = await readProcessUsage(server.pid);
    const answers = await loadNameServer(Number(port), kind, loadSeconds);
    const after = await readProcessUsage(server.pid);
    return ((after.cpuSeconds - before.cpuSeconds) * 1e6) / answers;
  };
  for (const kind of kinds) await load(kind, warmUpSeconds);
  const measured: Record<QuestionKind, number[]> = { mesh: [], "passed on": [] };
  for (let round = 1; round <= rounds; round += 1) {
    for (const kind of kinds) {
      const microseconds = await load(kind, seconds);
      measured[kind].push(microseconds);
      progress(`round ${round}, ${kind}: ${microseconds.toFixed(1)} µs CPU an answer`);
    }
  }
  const row = ["Tulle's agent", ...kinds.map((kind) => median(measured[kind]).toFixed(1))];
  const header = ["CPU µs for an answer, UDP", "a name of the mesh", "passed on"];
  return { markdown: markdownTable(header, [row]), data: { measured } };
}
