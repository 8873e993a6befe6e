// Makes a cached Python virtual environment with pinned packages, for tests that drive our servers with Python's
// clients.
import { createHash } from "node:crypto";
import { mkdir, mkdtemp, readFile, rm, symlink } from "node:fs/promises";
import path from "node:path";
import { cacheFolder, exists } from "./cache.ts";
import { lastLines, runCommand } from "./run-command.ts";
import { ToolUnavailable } from "./tool-unavailable.ts";

/** The lock file of the client libraries with which the authorization server is tried. */
export const oauthClientPackages = "python/oauth-clients.txt";

/**
 * The absolute path of a python3 that can import the packages of a lock file beside this one (each with its version and
 * digests). The environment is made once for a state of it.
 * @throws {ToolUnavailable}
 */
export async function pythonEnvironment(lockFile: string): Promise<string> {
  const lock = path.join(import.meta.dirname, lockFile);
  const key = createHash("sha256")
    .update(await readFile(lock))
    .digest("hex")
    .slice(0, 12);
  const link = path.join(cacheFolder, `python-${key}`);
  const python = path.join(link, "bin", "python3");
  if (await exists(python)) return python;
  await mkdir(cacheFolder, { recursive: true });
  // A virtual environment holds its own path, so it cannot be renamed into place; a link to it can appear in one step.
  const folder = await mkdtemp(`${link}-`);
  try {
    await fill(folder, lock);
    await publish(folder, link);
  } catch (error) {
    // What a command that took too long had started may still write; the reason matters more than what it leaves.
    await rm(folder, { recursive: true, force: true }).catch(() => undefined);
    throw error;
  }
  return python;
}

async function fill(folder: string, lock: string): Promise<void> {
  const label = `Python with the packages of ${path.basename(lock)}`;
  const made = await runCommand("python3", ["-m", "venv", folder], { timeoutMs: 300_000 });
  if (made.code !== 0) {
    throw new ToolUnavailable(label, `needs python3 with venv (Debian: python3-venv): ${lastLines(made)}`);
  }
  const python = path.join(folder, "bin", "python3");
  const install = ["-m", "pip", "install", "--quiet", "--no-deps", "--require-hashes", "-r", lock];
  const installed = await runCommand(python, install, { timeoutMs: 300_000 });
  if (installed.code !== 0) throw new ToolUnavailable(label, lastLines(installed));
}

/** Whoever comes second uses the first one's. */
async function publish(folder: string, link: string): Promise<void> {
  try {
    await symlink(path.basename(folder), link);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    await rm(folder, { recursive: true, force: true });
  }
}
