// Installs npm packages into a folder of the cache, for tests that drive our servers with clients in versions that the
// project does not depend on.
import { createHash } from "node:crypto";
import { access, mkdir, rename, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import { lastLines, runCommand } from "./run-command.ts";
import { ToolUnavailable } from "./tool-unavailable.ts";

const cacheFolder = path.resolve(import.meta.dirname, "../../.cache");

/**
 * The absolute path of a folder whose `node_modules` holds the packages (`name@version` each). It is made once for a list.
 * @throws {ToolUnavailable}
 */
export async function npmPackages(packages: readonly string[]): Promise<string> {
  const key = createHash("sha256").update(packages.join("\n")).digest("hex").slice(0, 12);
  const folder = path.join(cacheFolder, `npm-${key}`);
  const isThere = await access(folder).then(
    () => true,
    () => false,
  );
  if (isThere) return folder;
  const draft = `${folder}.${process.pid}`;
  await mkdir(draft, { recursive: true });
  await writeFile(path.join(draft, "package.json"), '{ "private": true }\n');
  const arguments_ = ["install", "--no-audit", "--no-fund", "--ignore-scripts", ...packages];
  const installed = await runCommand("npm", arguments_, { cwd: draft, timeoutMs: 300_000 });
  if (installed.code !== 0) {
    await rm(draft, { recursive: true, force: true });
    throw new ToolUnavailable(`npm packages ${packages.join(", ")}`, lastLines(installed));
  }
  await rename(draft, folder).catch(() => rm(draft, { recursive: true, force: true }));
  return folder;
}
