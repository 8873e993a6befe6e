// Makes the bundle of a clone's programs in node_modules/.bundle: each start then reads a dozen files in the place of
// hundreds. `packages/loading` says when it may be run. Nothing is done where it is fresh. By hand: `npm run bundle`.
import { spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { chmodSync, globSync, mkdirSync, readdirSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import path from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { pathToFileURL } from "node:url";
import { bundleFolder, freshProgram, manifestName, statusesOf, type BundleManifest } from "@tulle/loading";
import { bundlePrograms, compileFiles, isCode } from "./bundle-programs.ts";

/** A process loads the rest of its bundle later: those of running processes have to stay. */
const keptBundles = 8;
const keptMs = 86_400_000;

/** Twice the steps in which a kernel's file times go. */
const coarseTimeMs = 20;

/** Makes the bundle of the clone at `root` unless it is fresh. */
async function makeBundle(root: string): Promise<void> {
  if (freshProgram(root, "tulle.mjs") !== undefined) return;
  if (statSync(path.join(root, "node_modules")).uid !== process.getuid?.()) {
    throw new Error(`${root}/node_modules belongs to another user, who may run npm run bundle`);
  }
  for (;;) {
    const sources = sourcesOf(root);
    const statuses = statusesOf(root, sources);
    // What is written within one step of the clock has one time: a source is read when its step is over.
    await delay(coarseTimeMs);
    const files = await bundlePrograms({
      root,
      extension: "ts",
      folder: path.join(bundleFolder(root), "bundle"),
      dirname: (file) => JSON.stringify(path.dirname(file)),
      url: (file) => JSON.stringify(pathToFileURL(file).href),
    });
    const after = statusesOf(root, sources);
    // Edited meanwhile: both may be in it, the old and the new.
    if (!statuses.every((status, index) => status === after[index])) continue;
    write(root, files, { sources, statuses });
    return;
  }
}

function sourcesOf(root: string): readonly string[] {
  return [
    "package-lock.json",
    "node_modules/.package-lock.json",
    "tools/bundle.ts",
    "tools/bundle-programs.ts",
    ...globSync("packages/*/{package.json,src/**/*.ts}", {
      cwd: root,
      exclude: (name) => name.endsWith(".test.ts") || name === "testing",
    }).sort(),
  ];
}

/** Keeps what running processes may still load: each bundle has a folder of its own, which is never written again. */
function write(
  root: string,
  files: ReadonlyMap<string, Uint8Array>,
  made: Pick<BundleManifest, "sources" | "statuses">,
): void {
  const folder = bundleFolder(root);
  const name = randomBytes(12).toString("hex");
  mkdirSync(folder, { recursive: true });
  chmodSync(folder, 0o755);
  const bundle = path.join(folder, name);
  mkdirSync(bundle);
  chmodSync(bundle, 0o755);
  for (const [file, contents] of files) writeOwn(path.join(bundle, file), contents);
  const manifest: BundleManifest = {
    root,
    folder: name,
    files: [...files.keys()].filter((file) => isCode(file)),
    ...made,
  };
  const written = path.join(folder, `${name}.json`);
  writeOwn(written, JSON.stringify(manifest));
  renameSync(written, path.join(folder, manifestName));
  removeOld(folder);
  warm(root, bundle, manifest.files);
}

/** Whatever this user's mask is: what others may write is not run. */
function writeOwn(file: string, contents: string | Uint8Array): void {
  writeFileSync(file, contents, { flag: "wx" });
  chmodSync(file, 0o644);
}

function removeOld(folder: string): void {
  const bundles = readdirSync(folder, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => ({ path: path.join(folder, name), madeMs: statSync(path.join(folder, name)).mtimeMs }))
    .sort((a, b) => b.madeMs - a.madeMs);
  for (const bundle of bundles.slice(keptBundles)) {
    if (Date.now() - bundle.madeMs > keptMs) rmSync(bundle.path, { recursive: true, force: true });
  }
}

/** Compiles all of it once, so that the first processes are as quick as the next ones. */
function warm(root: string, bundle: string, files: readonly string[]): void {
  const environment = { NODE_COMPILE_CACHE: path.join(root, "node_modules", ".cache", "compile") };
  // What cannot be compiled now is when it is run.
  compileFiles(
    files.map((file) => path.join(bundle, file)),
    environment,
  );
  // And the few sources that a start reads before it knows of the bundle.
  const entry = [path.join(root, "packages/cli/src/main.ts"), "version"];
  spawnSync(process.execPath, entry, { env: { ...process.env, ...environment }, stdio: "ignore", timeout: 60_000 });
}

try {
  await makeBundle(path.resolve(import.meta.dirname, ".."));
} catch (error) {
  process.stderr.write(`${(error as Error).message}\n`);
  process.exitCode = 1;
}
