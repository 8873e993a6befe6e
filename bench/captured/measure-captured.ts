// What a request costs a proxy that the kernel leads it to, beside one that the client has sent to the proxy itself: on
// a connection of its own, and on one that is kept, in a network namespace of the bench's own.
import assert from "node:assert/strict";
import { envoyPath } from "../../tests/tools/envoy-path.ts";
import { lastLines, runCommand } from "../../tests/tools/run-command.ts";
import { markdownTable } from "../measure/markdown-table.ts";
import { median } from "../measure/median.ts";
import { onCore } from "../measure/on-core.ts";
import type { ScenarioOptions, ScenarioResult } from "../scenario.ts";
import type { ConnectionRound } from "./new-connections.ts";

const loadCore = 1;
const timeoutMs = 300_000;
const program = new URL("./new-connections.ts", import.meta.url).pathname;

export async function measureCaptured({ rounds, proxies, progress }: ScenarioOptions): Promise<ScenarioResult> {
  const chosen = ["Envoy", "Tulle"].filter((name) => proxies?.includes(name) !== false);
  const measured: { readonly name: string; readonly rounds: readonly ConnectionRound[] }[] = [];
  for (const name of chosen) {
    const envoy = name === "Envoy" ? await envoyPath() : "";
    const command = onCore(loadCore, process.execPath, [program, envoy, String(rounds)]);
    const result = await runCommand("unshare", ["--net", "--", command[0], ...command[1]], { timeoutMs });
    assert.equal(result.code, 0, `${name}: ${lastLines(result)}`);
    measured.push({ name, rounds: JSON.parse(result.stdout.trim()) as readonly ConnectionRound[] });
    progress(`${name} has been measured`);
  }
  const kinds = { alone: "a new connection with one request", kept: "a request on a kept connection" } as const;
  const rows = measured.flatMap(({ name, rounds: each }) =>
    (["alone", "kept"] as const).map((kind) => {
      const explicit = median(each.map((one) => one[kind].explicit));
      const captured = median(each.map((one) => one[kind].captured));
      // By pairs of one round: what else the machine does weighs on both of them.
      const difference = median(each.map((one) => one[kind].captured - one[kind].explicit));
      return [name, kinds[kind], explicit.toFixed(1), captured.toFixed(1), difference.toFixed(1)];
    }),
  );
  const header = ["CPU µs", "for", "explicit", "captured", "difference"];
  return { markdown: markdownTable(header, rows), data: { measured } };
}
