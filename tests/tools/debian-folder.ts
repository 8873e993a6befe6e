// Unpacks Debian packages into a folder of the cache, for programs that should not be installed where tests run, such
// as a web server.
import { glob, mkdir, mkdtemp, rename, rm } from "node:fs/promises";
import path from "node:path";
import { cacheFolder, exists } from "./cache.ts";
import { lastLines, runCommand } from "./run-command.ts";
import { ToolUnavailable } from "./tool-unavailable.ts";

export interface DebianFolder {
  /** What `/` is for an installed package. */
  readonly root: string;
  /** For `LD_LIBRARY_PATH`: the libraries that this machine lacks lie in the folder too. */
  readonly libraryPath: string;
}

/**
 * The packages, of this machine's release of Debian, and those that they need and this machine lacks.
 * @throws {ToolUnavailable}
 */
export async function debianFolder(packages: readonly string[]): Promise<DebianFolder> {
  const root = path.join(cacheFolder, `debian-${packages.join("+")}`);
  if (!(await exists(root))) await fill(root, packages);
  const libraries = await Array.fromAsync(glob("{lib,usr/lib}/*-linux-gnu", { cwd: root }));
  return { root, libraryPath: libraries.map((folder) => path.join(root, folder)).join(":") };
}

async function fill(root: string, packages: readonly string[]): Promise<void> {
  await mkdir(cacheFolder, { recursive: true });
  const work = await mkdtemp(`${root}-`);
  try {
    const archives = path.join(work, "archives");
    const ready = path.join(work, "ready");
    await mkdir(path.join(archives, "partial"), { recursive: true });
    await mkdir(ready);
    await download(archives, packages);
    for await (const archive of glob("*.deb", { cwd: archives })) {
      const unpacked = await runCommand("dpkg-deb", ["--extract", path.join(archives, archive), ready]);
      if (unpacked.code !== 0) throw new ToolUnavailable(packages[0]!, lastLines(unpacked));
    }
    // Whoever comes second uses the first one's.
    await rename(ready, root).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== "ENOTEMPTY" && error.code !== "EEXIST") throw error;
    });
  } finally {
    await rm(work, { recursive: true, force: true });
  }
}

/** An image without package lists, or with stale ones, fails the first time; the lists are fetched only then. */
async function download(archives: string, packages: readonly string[]): Promise<void> {
  const options = ["-qq", "-o", `Dir::Cache::archives=${archives}`, "-o", "Debug::NoLocking=1"];
  const install = ["--yes", "--no-install-recommends", "--reinstall", "--download-only", "install"];
  const fetch = () => runCommand("apt-get", [...options, ...install, ...packages], { timeoutMs: 180_000 });
  let fetched = await fetch();
  if (fetched.code !== 0 && fetched.code !== 127) {
    await runCommand("apt-get", ["-qq", "-o", "DPkg::Lock::Timeout=300", "update"], { timeoutMs: 180_000 });
    fetched = await fetch();
  }
  if (fetched.code === 0) return;
  throw new ToolUnavailable(packages[0]!, `apt-get could not fetch ${packages.join(" ")}: ${lastLines(fetched)}`);
}
