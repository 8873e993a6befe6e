// Which test files of `npm test` share a process. A process of its own costs a file 0.3 s of CPU, most of it for
// modules that its neighbours load too; a shop of its own costs it 7 s.
import { readFile } from "node:fs/promises";
import path from "node:path";
import { pathToFileURL } from "node:url";

/** Files that run one after another in one process, or one that has a process of its own. */
export interface Batch {
  readonly name: string;
  readonly files: readonly string[];
}

/** Enough that modules are shared, few enough that batches end together. */
const maxFilesInBatch = 24;

/**
 * What asks for a process of its own: hooks of the whole file (they would be the batch's), a changed environment, faked
 * time, programs that are waited for (others run meanwhile), measured memory, and worker threads.
 */
const ownProcess =
  /^(?:before|after|beforeEach|afterEach)\(|process\.env\[[^\]]*\] = |mock\.timers|startProcess\(|spawn\(|spawnSync\(|memoryUsage|node:worker_threads|ShopInstance|Envoy\(|nginx|chromium/im;

/** Of the batch of files that share a running shop (tests/e2e/running-shop.ts); the whole shop has one of its own. */
function sharedShop(text: string): string | undefined {
  if (!text.includes("useRunningShop(")) return undefined;
  return /["`]whole, /.test(text) ? "whole-shop" : "running-shop";
}

/**
 * Files of `packages/NAME` in batches, and those that share a shop; everything else by itself. Paths are relative to
 * `root`.
 */
export async function testBatches(files: readonly string[], root: string): Promise<readonly Batch[]> {
  const batches: Batch[] = [];
  const shared = new Map<string, string[]>();
  for (const file of files) {
    const [top, name] = file.split("/");
    const text = await readFile(path.join(root, file), "utf8");
    const owner = top === "tests" ? sharedShop(text) : top === "packages" ? `${top}-${name}` : top!;
    if (owner === undefined || (top !== "tests" && ownProcess.test(text))) {
      batches.push({ name: file, files: [file] });
    } else {
      let neighbours = shared.get(owner);
      if (neighbours === undefined) shared.set(owner, (neighbours = []));
      neighbours.push(file);
    }
  }
  for (const [owner, neighbours] of shared) {
    const count = Math.ceil(neighbours.length / maxFilesInBatch);
    const each = Math.ceil(neighbours.length / count);
    for (let index = 0; index < count; index++) {
      batches.push({ name: `${owner}-${index + 1}`, files: neighbours.slice(index * each, (index + 1) * each) });
    }
  }
  return batches;
}

/** The program that runs a batch: a test that fails names its own file all the same. */
export function batchProgram(batch: Batch, root: string): string {
  return batch.files
    .map((file) => `await import(${JSON.stringify(pathToFileURL(path.join(root, file)).href)});\n`)
    .join("");
}
