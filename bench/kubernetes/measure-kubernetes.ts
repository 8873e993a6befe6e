// `npm run bench -- --only kubernetes`: what the control plane of a cluster costs and how long it takes, on a real API
// server, and what a sidecar adds to the start of a pod. Makes the tests' cluster of two nodes, in which
// `in-cluster.ts` measures; takes what `npm run test:kubernetes` takes, and as long to build the first time.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import path from "node:path";
import { sweep } from "../../tests/tools/cluster/cluster-group.ts";
import { clusterPrograms } from "../../tests/tools/cluster/cluster-programs.ts";
import { inOwnNamespaces } from "../../tests/tools/cluster/own-namespaces.ts";
import { temporaryFolder } from "../../tests/tools/temporary-folder.ts";
import { markdownTable } from "../measure/markdown-table.ts";
import type { ScenarioOptions, ScenarioResult } from "../scenario.ts";

/** A figure beside what it should be. */
export interface Figure {
  readonly name: string;
  readonly value: number;
  readonly unit: string;
  /** The most that it should be; undefined where it is only told. */
  readonly aim?: number;
}

const root = path.resolve(import.meta.dirname, "../..");

export async function measureKubernetes({ rounds, progress }: ScenarioOptions): Promise<ScenarioResult> {
  await clusterPrograms();
  await sweep();
  const images = path.join(root, ".cache", "tulle-images.tar");
  await run([process.execPath, path.join(root, "tools/images/images.ts"), "--output", images]);
  const file = path.join(temporaryFolder("tulle-bench-"), "figures.json");
  const cluster = path.join(root, "tests/tools/cluster/run.ts");
  const inside = path.join(import.meta.dirname, "in-cluster.ts");
  progress("a cluster of two nodes");
  try {
    const command = [process.execPath, inside, file, `${rounds}`];
    await run(inOwnNamespaces([process.execPath, cluster, "--image", images, "--", ...command]));
  } finally {
    await sweep();
  }
  const figures = JSON.parse(await readFile(file, "utf8")) as readonly Figure[];
  return {
    markdown: markdownTable(
      ["", "measured", "aim"],
      figures.map(({ name, value, unit, aim }) => [
        name,
        `${value.toFixed(value < 10 ? 2 : 0)} ${unit}`,
        aim === undefined ? "" : `${aim} ${unit}`,
      ]),
    ),
    data: figures,
  };
}

/** What it prints is progress: the standard output of a bench is its result. */
async function run([program, ...args]: readonly string[]): Promise<void> {
  const child = spawn(program!, args, { cwd: root, stdio: ["ignore", process.stderr, process.stderr] });
  const [code] = (await once(child, "exit")) as [number | null];
  if (code !== 0) throw new Error(`${path.basename(program!)} ${args[0]} ended with ${code}`);
}
