// Finds the programs that tests borrow from Debian (peers, load generators, browsers, databases) and installs a missing
// one where that is allowed.
import { access, constants, glob } from "node:fs/promises";
import path from "node:path";
import { lastLines, runCommand, type CommandResult } from "./run-command.ts";
import { ToolUnavailable } from "./tool-unavailable.ts";

interface DebianProgram {
  /** Debian's package that brings the program. */
  readonly packageName: string;
  /** The program's file name, looked up in `folders` and in PATH. */
  readonly program: string;
  /** Folders, or patterns of them, that are looked into before PATH. */
  readonly folders?: readonly string[];
}

const programs = {
  nginx: { packageName: "nginx-light", program: "nginx" },
  haproxy: { packageName: "haproxy", program: "haproxy" },
  wrk: { packageName: "wrk", program: "wrk" },
  h2load: { packageName: "nghttp2-client", program: "h2load" },
  nghttpd: { packageName: "nghttp2-server", program: "nghttpd" },
  nghttp: { packageName: "nghttp2-client", program: "nghttp" },
  chromium: { packageName: "chromium", program: "chromium" },
  "chromium-headless-shell": { packageName: "chromium-headless-shell", program: "chromium-headless-shell" },
  "chromium-driver": { packageName: "chromium-driver", program: "chromedriver" },
  /** The server program; `initdb`, `pg_ctl` and `psql` lie in the same folder. */
  postgresql: { packageName: "postgresql-15", program: "postgres", folders: ["/usr/lib/postgresql/*/bin"] },
  psql: { packageName: "postgresql-client-15", program: "psql" },
  "redis-server": { packageName: "redis-server", program: "redis-server" },
  "redis-cli": { packageName: "redis-tools", program: "redis-cli" },
  dig: { packageName: "bind9-dnsutils", program: "dig" },
  wget: { packageName: "wget", program: "wget" },
  nftables: { packageName: "nftables", program: "nft" },
  conntrack: { packageName: "conntrack", program: "conntrack" },
  iproute2: { packageName: "iproute2", program: "ip" },
  systemd: { packageName: "systemd", program: "systemctl" },
  "musl-gcc": { packageName: "musl-tools", program: "musl-gcc" },
  tmux: { packageName: "tmux", program: "tmux" },
  curl: { packageName: "curl", program: "curl" },
  openssl: { packageName: "openssl", program: "openssl" },
  tcpdump: { packageName: "tcpdump", program: "tcpdump" },
  newuidmap: { packageName: "uidmap", program: "newuidmap" },
  taskset: { packageName: "util-linux", program: "taskset" },
} as const satisfies Record<string, DebianProgram>;

export type DebianToolName = keyof typeof programs;

const found = new Map<DebianToolName, Promise<string>>();

/** The absolute path of the program that the tool's name stands for. @throws {ToolUnavailable} */
export function debianTool(name: DebianToolName): Promise<string> {
  let result = found.get(name);
  if (result === undefined) {
    result = findOrInstall(programs[name]);
    found.set(name, result);
  }
  return result;
}

/**
 * Installs the missing ones among several with one run of apt-get, which is much quicker than one run each. Never
 * throws.
 */
export async function installDebianTools(names: readonly DebianToolName[]): Promise<void> {
  const missing: string[] = [];
  for (const name of names) {
    if ((await find(programs[name])) === undefined) missing.push(programs[name].packageName);
  }
  if (missing.length > 1 && process.getuid?.() === 0) await installPackages(missing);
}

async function findOrInstall(tool: DebianProgram): Promise<string> {
  const present = await find(tool);
  if (present !== undefined) return present;
  await install(tool);
  const installed = await find(tool);
  if (installed !== undefined) return installed;
  throw new ToolUnavailable(tool.program, `the package ${tool.packageName} is installed, but the program is not found`);
}

async function find(tool: DebianProgram): Promise<string | undefined> {
  const candidates: string[] = [];
  for (const folder of tool.folders ?? []) {
    for await (const match of glob(path.join(folder, tool.program))) candidates.push(match);
  }
  const onPath = (process.env["PATH"] ?? "").split(path.delimiter).filter((folder) => folder !== "");
  // Debian keeps daemons in the sbin folders, which an ordinary user's PATH leaves out.
  for (const folder of [...onPath, "/usr/local/sbin", "/usr/sbin", "/sbin"]) {
    candidates.push(path.join(folder, tool.program));
  }
  for (const candidate of candidates) {
    const executable = await access(candidate, constants.X_OK).then(
      () => true,
      () => false,
    );
    if (executable) return candidate;
  }
  return undefined;
}

async function install(tool: DebianProgram): Promise<void> {
  const byHand = `install Debian's package ${tool.packageName} (apt-get install ${tool.packageName})`;
  if (process.getuid?.() !== 0) throw new ToolUnavailable(tool.program, `${byHand}; this user may not`);
  const result = await installPackages([tool.packageName]);
  if (result.code === 127) throw new ToolUnavailable(tool.program, `no apt-get here: ${byHand} or its like`);
  if (result.code !== 0) throw new ToolUnavailable(tool.program, `${byHand}; tried: ${lastLines(result)}`);
}

/** An image without package lists, or with stale ones, fails the first time; the lists are fetched only then. */
async function installPackages(packageNames: readonly string[]): Promise<CommandResult> {
  const first = await aptInstall(packageNames);
  if (first.code === 0 || first.code === 127) return first;
  await runCommand("apt-get", [...aptOptions, "update"], { timeoutMs: 180_000 });
  return aptInstall(packageNames);
}

/** Several test processes may install at once: each waits for dpkg's lock. */
const aptOptions = ["-qq", "-o", "DPkg::Lock::Timeout=300"];

function aptInstall(packageNames: readonly string[]): Promise<CommandResult> {
  return runCommand("apt-get", [...aptOptions, "install", "--yes", "--no-install-recommends", ...packageNames], {
    // RUNLEVEL=1 keeps Debian's packages from starting their daemons (nginx on port 80, PostgreSQL on 5432).
    env: { ...process.env, DEBIAN_FRONTEND: "noninteractive", RUNLEVEL: "1" },
    timeoutMs: 300_000,
  });
}
