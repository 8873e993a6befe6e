// The cluster's API server as a process: stopped for a while, or ended and started again, beside everybody who follows
// it.
import { spawn } from "node:child_process";
import { closeSync, openSync } from "node:fs";
import { readdir, readFile, readlink } from "node:fs/promises";
import { waitFor } from "../processes.ts";
import { nodes } from "./addresses.ts";
import { kubectl } from "./kubectl.ts";

const program = "kube-apiserver";

interface RunningServer {
  readonly pid: number;
  readonly command: readonly string[];
}

/** Among the processes of the cluster's namespaces, in which tests run. */
async function runningServer(): Promise<RunningServer | undefined> {
  for (const name of await readdir("/proc")) {
    if (!/^\d+$/.test(name)) continue;
    const command = (await readFile(`/proc/${name}/cmdline`, "utf8").catch(() => "")).split("\0").slice(0, -1);
    if (command[0] === program) return { pid: Number(name), command };
  }
  return undefined;
}

async function mustRun(): Promise<RunningServer> {
  const server = await runningServer();
  if (server === undefined) throw new Error(`no ${program} runs`);
  return server;
}

/** Nobody is answered, and connections stay, until the work is done. */
export async function whileApiServerHangs(work: () => Promise<void>): Promise<void> {
  const { pid } = await mustRun();
  process.kill(pid, "SIGSTOP");
  try {
    await work();
  } finally {
    process.kill(pid, "SIGCONT");
  }
  await untilApiServerAnswers();
}

/**
 * As an upgrade does it: it is told to end, takes nothing any more, and another one starts once the work is done. What
 * it still waits for, up to a minute, is cut.
 */
export async function whileApiServerIsGone(work: () => Promise<void>): Promise<void> {
  const { pid, command } = await mustRun();
  const logFile = await readlink(`/proc/${pid}/fd/1`);
  process.kill(pid, "SIGTERM");
  await waitFor(async () => !(await answers()), { what: `${program} to close its port`, intervalMs: 50 });
  process.kill(pid, "SIGKILL");
  await waitFor(async () => (await runningServer()) === undefined, { what: `${program} to end`, intervalMs: 50 });
  try {
    await work();
  } finally {
    const log = openSync(logFile, "a");
    // Other test files need it after this one has ended; it ends with the cluster.
    const [nsenter, ...args] = ["nsenter", `--net=/run/netns/${nodes[0].name}`, ...command];
    spawn(nsenter, args, { stdio: ["ignore", log, log], detached: true }).unref();
    closeSync(log);
  }
  await untilApiServerAnswers();
}

function answers(): Promise<boolean> {
  return kubectl(["get", "--raw", "/readyz", "--request-timeout=5s"]).then(
    () => true,
    () => false,
  );
}

async function untilApiServerAnswers(): Promise<void> {
  await waitFor(answers, { what: `${program} to answer again`, intervalMs: 200 });
}
