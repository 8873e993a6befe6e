// How long `tulle up` takes until it prints Ready, in a clone that is already installed: for samples/shop, and for ten
// pods in each of the modes.
import { cp, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import { freePort, startProcess } from "../tests/tools/processes.ts";
import { markdownTable } from "./measure/markdown-table.ts";
import { median } from "./measure/median.ts";
import type { ScenarioOptions, ScenarioResult } from "./scenario.ts";

const root = path.resolve(import.meta.dirname, "..");
const header = ["", "median s", "least s", "most s"];

export async function measureUpToReady(options: ScenarioOptions): Promise<ScenarioResult> {
  const seconds: number[] = [];
  for (let round = 1; round <= options.rounds; round++) {
    const publish = `${await freePort()}:8080,${await freePort()}:8443`;
    seconds.push(await secondsUntilReady(copyShop, ["--publish", publish]));
    options.progress(`round ${round}: Ready after ${seconds.at(-1)!.toFixed(2)} s`);
  }
  return { markdown: markdownTable(header, [rowOf("tulle up samples/shop", seconds)]), data: { seconds } };
}

/** Both modes in each round: what the machine does beside it is the same for both then. */
export async function measureNamespaces(options: ScenarioOptions): Promise<ScenarioResult> {
  const rounds: { readonly loopback: number; readonly namespaces: number }[] = [];
  for (let round = 1; round <= options.rounds; round++) {
    const loopback = await secondsUntilReady(writeTenPods, ["--mode", "loopback"]);
    const namespaces = await secondsUntilReady(writeTenPods, ["--mode", "namespaces"]);
    rounds.push({ loopback, namespaces });
    options.progress(`round ${round}: ${loopback.toFixed(2)} s and ${namespaces.toFixed(2)} s`);
  }
  const rows = (["loopback", "namespaces"] as const).map((mode) =>
    rowOf(
      `ten pods, ${mode}`,
      rounds.map((round) => round[mode]),
    ),
  );
  const ratio = median(rounds.map(({ loopback, namespaces }) => namespaces / loopback));
  return {
    markdown: `${markdownTable(header, rows)}\n\nnamespaces / loopback: ${ratio.toFixed(2)} (median of the rounds' ratios)`,
    data: { rounds, ratio },
  };
}

function rowOf(name: string, seconds: readonly number[]): string[] {
  return [name, ...[median(seconds), Math.min(...seconds), Math.max(...seconds)].map((value) => value.toFixed(2))];
}

export async function copyShop(folder: string): Promise<void> {
  await cp(path.join(root, "samples", "shop"), folder, {
    recursive: true,
    filter: (source) => !source.includes(".tulle"),
  });
}

/** With a sidecar each, and an application that costs nothing. */
async function writeTenPods(folder: string): Promise<void> {
  await writeFile(
    path.join(folder, "pods.yaml"),
    `
apiVersion: v1
kind: Namespace
metadata: { name: ten, labels: { tulle-injection: enabled } }
---
apiVersion: v1
kind: Service
metadata: { name: idle, namespace: ten }
spec: { selector: { app: idle }, ports: [{ name: http, port: 80, targetPort: 3000 }] }
---
apiVersion: apps/v1
kind: Deployment
metadata: { name: idle, namespace: ten }
spec:
  replicas: 10
  selector: { matchLabels: { app: idle } }
  template:
    metadata:
      labels: { app: idle }
      annotations: { local.tulle.io/command.idle: '["sleep", "infinity"]' }
    spec: { containers: [{ name: idle }] }
`,
  );
}

function secondsUntilReady(prepare: (folder: string) => Promise<void>, args: readonly string[]): Promise<number> {
  return inOwnFolder(prepare, async (folder) => {
    const started = performance.now();
    await using up = await startProcess(process.execPath, [...upCommand(folder), ...args], { name: "tulle up" });
    await up.waitForOutput(/^Ready\b/m, { timeoutMs: 120_000 });
    return (performance.now() - started) / 1000;
  });
}

/** Arguments of Node. */
export function upCommand(folder: string): readonly string[] {
  return [path.join(root, "packages", "cli", "bin", "tulle.mjs"), "up", folder];
}

/**
 * `run` in a folder of its own, so that each round starts without state and beside whatever else runs; as deep in the
 * clone as the samples, which reach the clone's libraries and the authorization server from there.
 */
export async function inOwnFolder<T>(
  prepare: (folder: string) => Promise<void>,
  run: (folder: string) => Promise<T>,
): Promise<T> {
  const cache = path.join(root, ".cache");
  await mkdir(cache, { recursive: true });
  const folder = await mkdtemp(path.join(cache, "bench-up-"));
  try {
    await prepare(folder);
    return await run(folder);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
