// Installs npm packages into a folder of the cache, for tests that drive our servers with clients in versions that the
// project does not depend on.
import { createHash } from "node:crypto";
import { copyFile, mkdir, readFile, rename, rm } from "node:fs/promises";
import path from "node:path";
import { cacheFolder, exists } from "./cache.ts";
import { lastLines, runCommand } from "./run-command.ts";
import { ToolUnavailable } from "./tool-unavailable.ts";

const manifests = ["package.json", "package-lock.json"] as const;

/**
 * The absolute path of a `node_modules` with the packages of a folder's `package.json` and lock file. It is made once
 * for a state of them.
 * @throws {ToolUnavailable}
 */
export async function npmPackages(project: string): Promise<string> {
  const hash = createHash("sha256");
  for (const name of manifests) hash.update(await readFile(path.join(project, name)));
  const folder = path.join(cacheFolder, `npm-${hash.digest("hex").slice(0, 12)}`);
  const modules = path.join(folder, "node_modules");
  if (await exists(modules)) return modules;
  const draft = `${folder}.${process.pid}`;
  await mkdir(draft, { recursive: true });
  for (const name of manifests) await copyFile(path.join(project, name), path.join(draft, name));
  const install = ["ci", "--no-audit", "--no-fund", "--ignore-scripts"];
  const installed = await runCommand("npm", install, { cwd: draft, timeoutMs: 300_000 });
  if (installed.code !== 0) {
    await rm(draft, { recursive: true, force: true });
    throw new ToolUnavailable(`npm packages of ${path.basename(project)}`, lastLines(installed));
  }
  await rename(draft, folder).catch(() => rm(draft, { recursive: true, force: true }));
  return modules;
}
