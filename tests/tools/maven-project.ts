// Builds a Maven project into the cache, for tests that run Java programs against our servers.
import { cp, mkdir, rename, rm } from "node:fs/promises";
import path from "node:path";
import { cacheFolder, digestOf, exists } from "./cache.ts";
import { lastLines, runCommand } from "./run-command.ts";
import { ToolUnavailable } from "./tool-unavailable.ts";

/**
 * The absolute path of the project's jar, built once for a state of its sources.
 * @throws {ToolUnavailable}
 */
export async function mavenJar(folder: string, jar: string): Promise<string> {
  const built = path.join(cacheFolder, `maven-${await digestOf(folder, "{pom.xml,src/**/*.java}")}`);
  const found = path.join(built, "target", jar);
  if (await exists(found)) return found;
  const draft = `${built}.${process.pid}`;
  await mkdir(cacheFolder, { recursive: true });
  await cp(folder, draft, { recursive: true });
  const made = await runCommand("mvn", ["-q", "-B", "package"], { cwd: draft, timeoutMs: 300_000 });
  if (made.code !== 0) {
    await rm(draft, { recursive: true, force: true });
    throw new ToolUnavailable("Maven", `needs mvn and a JDK of 17 or more (Debian: maven): ${lastLines(made)}`);
  }
  await rm(built, { recursive: true, force: true });
  await rename(draft, built);
  return found;
}
