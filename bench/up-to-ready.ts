// How long `tulle up samples/shop` takes until it prints Ready, in a clone that is already installed.
import { cp, mkdir, mkdtemp, rm } from "node:fs/promises";
import path from "node:path";
import { freePort, startProcess } from "../tests/tools/processes.ts";
import { markdownTable } from "./measure/markdown-table.ts";
import { median } from "./measure/median.ts";
import type { ScenarioOptions, ScenarioResult } from "./scenario.ts";

const root = path.resolve(import.meta.dirname, "..");

export async function measureUpToReady(options: ScenarioOptions): Promise<ScenarioResult> {
  const seconds: number[] = [];
  for (let round = 1; round <= options.rounds; round++) {
    seconds.push(await measureOnce());
    options.progress(`round ${round}: Ready after ${seconds.at(-1)!.toFixed(2)} s`);
  }
  const row = [median(seconds), Math.min(...seconds), Math.max(...seconds)].map((value) => value.toFixed(2));
  return {
    markdown: markdownTable(["", "median s", "least s", "most s"], [["tulle up samples/shop", ...row]]),
    data: { seconds },
  };
}

/**
 * A copy of the sample, so that each round starts without state and beside whatever else runs; as deep in the clone as
 * the sample itself, which reaches the clone's libraries and the authorization server from there.
 */
async function measureOnce(): Promise<number> {
  const cache = path.join(root, ".cache");
  await mkdir(cache, { recursive: true });
  const folder = await mkdtemp(path.join(cache, "bench-shop-"));
  try {
    await cp(path.join(root, "samples", "shop"), folder, {
      recursive: true,
      filter: (source) => !source.includes(".tulle"),
    });
    const command = path.join(root, "packages", "cli", "bin", "tulle.mjs");
    const publish = `${await freePort()}:8080,${await freePort()}:8443`;
    const started = performance.now();
    await using up = await startProcess(process.execPath, [command, "up", folder, "--publish", publish], {
      name: "tulle up",
    });
    await up.waitForOutput(/^Ready\b/m, { timeoutMs: 60_000 });
    return (performance.now() - started) / 1000;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
