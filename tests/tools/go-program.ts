// Builds a Go module into the cache, for tests that run Go programs against our servers.
import { mkdir, rename, rm } from "node:fs/promises";
import path from "node:path";
import { cacheFolder, digestOf, exists } from "./cache.ts";
import { lastLines, runCommand } from "./run-command.ts";
import { ToolUnavailable } from "./tool-unavailable.ts";

/**
 * The absolute path of the module's program, built once for a state of its sources.
 * @throws {ToolUnavailable}
 */
export async function goProgram(folder: string): Promise<string> {
  const program = path.join(cacheFolder, `go-${await digestOf(folder, "{go.mod,go.sum,*.go}")}`);
  if (await exists(program)) return program;
  await mkdir(cacheFolder, { recursive: true });
  const draft = `${program}.${process.pid}`;
  // Where Go's own instructions put it, which a shell that is no login shell may not know.
  const env = { ...process.env, PATH: `${process.env["PATH"]}:/usr/local/go/bin`, CGO_ENABLED: "0" };
  const built = await runCommand("go", ["build", "-o", draft, "."], { cwd: folder, env, timeoutMs: 600_000 });
  if (built.code !== 0) {
    await rm(draft, { force: true });
    throw new ToolUnavailable("Go", `needs go of the version in ${folder}/go.mod: ${lastLines(built)}`);
  }
  await rename(draft, program);
  return program;
}
