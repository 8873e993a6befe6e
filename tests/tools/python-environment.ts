// Makes a cached Python virtual environment with pinned packages, for tests that drive our servers with Python's clients.
import { createHash } from "node:crypto";
import { access, mkdir, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import { lastLines, runCommand } from "./run-command.ts";
import { ToolUnavailable } from "./tool-unavailable.ts";
import { withFileLock } from "./with-file-lock.ts";

const cacheFolder = path.resolve(import.meta.dirname, "../../.cache");

/** The client libraries with which the authorization server is tried. */
export const oauthClientPackages = [
  "Authlib==1.6.5",
  "requests==2.32.5",
  "requests-oauthlib==2.0.0",
  "oauthlib==3.3.1",
] as const;

/**
 * The absolute path of a python3 that can import the packages (`name==version` each). The environment is made once for a list.
 * @throws {ToolUnavailable}
 */
export async function pythonEnvironment(packages: readonly string[]): Promise<string> {
  const key = createHash("sha256").update(packages.join("\n")).digest("hex").slice(0, 12);
  const folder = path.join(cacheFolder, `python-${key}`);
  const python = path.join(folder, "bin", "python3");
  const stamp = path.join(folder, ".complete");
  if (await exists(stamp)) return python;
  await mkdir(cacheFolder, { recursive: true });
  // A virtual environment holds its own path, so it cannot be made aside and renamed; a lock keeps others out until it is whole.
  await withFileLock(`${folder}.lock`, async () => {
    if (await exists(stamp)) return;
    await rm(folder, { recursive: true, force: true });
    const label = `python packages ${packages.join(", ")}`;
    const made = await runCommand("python3", ["-m", "venv", folder], { timeoutMs: 120_000 });
    if (made.code !== 0) {
      throw new ToolUnavailable(label, `needs python3 with venv (Debian: python3-venv): ${lastLines(made)}`);
    }
    const installed = await runCommand(python, ["-m", "pip", "install", "--quiet", ...packages], {
      timeoutMs: 300_000,
    });
    if (installed.code !== 0) throw new ToolUnavailable(label, lastLines(installed));
    await writeFile(stamp, `${packages.join("\n")}\n`);
  });
  return python;
}

async function exists(file: string): Promise<boolean> {
  return access(file).then(
    () => true,
    () => false,
  );
}
