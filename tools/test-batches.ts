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
const maxFilesInBatch = 48;

/** Of files that wait for programs or start many proxies: each takes seconds. */
const maxSlowFilesInBatch = 8;

/** What asks for a process of its own: what is the process's, not the file's, and what loads both cores. */
const ownProcess =
  /process\.env\[[^\]]*\] = |mock\.timers|spawn\(|spawnSync\(|memoryUsage|node:worker_threads|ShopInstance|chromium|pageTests\(/im;

/** What a file is slow by: it starts programs, and waits for them. */
const slow = /^(?:before|after|beforeEach|afterEach)\(|startProcess\(|Envoy\(|nginx/im;

/** Folders of `tests` whose files are like those of a package; those of the others load both cores by themselves. */
const foldersInBatches: ReadonlySet<string> = new Set(["docs", "golden", "parity", "simulation"]);

/** Of the batch of files that share a running shop (tests/e2e/running-shop.ts); the whole shop has one of its own. */
function sharedShop(text: string): string | undefined {
  if (!/useRunningShop\(|Tests\(\{ mode: "loopback"/.test(text)) return undefined;
  return /["`]whole, /.test(text) ? "whole-shop" : "running-shop";
}

/**
 * Files of `packages/NAME` and of some folders of `tests` in batches, and those that share a shop; everything else by
 * itself. Paths are relative to `root`.
 */
export async function testBatches(files: readonly string[], root: string): Promise<readonly Batch[]> {
  const batches: Batch[] = [];
  const shared = new Map<string, string[]>();
  for (const file of files) {
    const owner = batchOf(file, await readFile(path.join(root, file), "utf8"));
    if (owner === undefined) {
      batches.push({ name: file, files: [file] });
      continue;
    }
    let neighbours = shared.get(owner);
    if (neighbours === undefined) shared.set(owner, (neighbours = []));
    neighbours.push(file);
  }
  for (const [owner, neighbours] of shared) {
    const count = Math.ceil(neighbours.length / (owner.endsWith(slowSuffix) ? maxSlowFilesInBatch : maxFilesInBatch));
    const each = Math.ceil(neighbours.length / count);
    for (let index = 0; index < count; index++) {
      batches.push({ name: `${owner}-${index + 1}`, files: neighbours.slice(index * each, (index + 1) * each) });
    }
  }
  return batches;
}

const slowSuffix = "-slow";

/** Undefined for a file that has a process of its own. */
function batchOf(file: string, text: string): string | undefined {
  const [top, name] = file.split("/");
  const shop = top === "tests" ? sharedShop(text) : undefined;
  if (shop !== undefined) return shop;
  if (ownProcess.test(text)) return undefined;
  if (top === "tests") return foldersInBatches.has(name!) ? `${top}-${name}${slowSuffix}` : undefined;
  const owner = top === "packages" ? `${top}-${name}` : top!;
  return slow.test(text) ? `${owner}${slowSuffix}` : owner;
}

/**
 * The program that runs a batch: each file is a suite that is loaded when the one before it is done, so that its hooks
 * are its own, and what it makes while it is loaded is young. A test that fails names its own file all the same. Files
 * that share a shop share the process's hooks, by which it ends.
 */
export function batchProgram(batch: Batch, root: string): string {
  const urls = batch.files.map((file) => pathToFileURL(path.join(root, file)).href);
  if (batch.name.includes("shop")) return urls.map((url) => `await import(${JSON.stringify(url)});\n`).join("");
  return `import { after, describe } from "node:test";

for (const [file, url] of ${JSON.stringify(batch.files.map((file, index) => [file, urls[index]]))}) {
  const { promise, resolve } = Promise.withResolvers();
  describe(file, async () => {
    try {
      await import(url);
      after(resolve);
    } catch (error) {
      resolve();
      throw error;
    }
  });
  await promise;
}
`;
}
