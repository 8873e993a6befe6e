// Builds a Maven project into the cache, for tests that run Java programs against our servers.
import { createHash } from "node:crypto";
import { access, cp, glob, mkdir, readFile, rename, rm } from "node:fs/promises";
import path from "node:path";
import { lastLines, runCommand } from "./run-command.ts";
import { ToolUnavailable } from "./tool-unavailable.ts";

const cacheFolder = path.resolve(import.meta.dirname, "../../.cache");

/**
 * The absolute path of the project's jar, built once for a state of its sources.
 * @throws {ToolUnavailable}
 */
export async function mavenJar(folder: string, jar: string): Promise<string> {
  const hash = createHash("sha256");
  const files = await Array.fromAsync(glob("{pom.xml,src/**/*.java}", { cwd: folder }));
  for (const file of files.sort()) hash.update(file).update(await readFile(path.join(folder, file)));
  const built = path.join(cacheFolder, `maven-${hash.digest("hex").slice(0, 12)}`);
  const found = path.join(built, "target", jar);
  const isBuilt = await access(found).then(
    () => true,
    () => false,
  );
  if (isBuilt) return found;
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
