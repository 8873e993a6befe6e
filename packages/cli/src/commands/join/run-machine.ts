// Runs a machine's agent: starts it again when it ends, and anew when the machine's address changes. With capture the
// kernel's rules are there before it and while it starts again, so that nothing goes round the proxy.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { setTimeout as wait } from "node:timers/promises";
import { agentExitCodes } from "@tulle/agent";
import { machineEnvironment, type MachineIdentity, outboundProxyPort, ownAddressTowards } from "@tulle/agent/machine";
import { installCapture, planCapture, removeCapture } from "@tulle/capture";
import { withCaptureFailures } from "../../command/capture-failures.ts";
import { CommandFailure } from "../../command/command-failure.ts";
import type { CommandContext } from "../../command/command-module.ts";
import { compileCacheFolder, entryFile } from "../../command/installation.ts";

export interface MachineRun {
  readonly machine: MachineIdentity;
  readonly stateFolder: string;
  /** Undefined: whatever the kernel sends from. */
  readonly address: string | undefined;
  readonly capture: { readonly user: number; readonly excludeInboundPorts: string } | undefined;
  readonly answersDns: boolean;
  readonly context: CommandContext;
}

const lookEveryMs = 1000;
const firstDelayMs = 200;
const longestDelayMs = 10_000;
/** An agent that ran this long had started well. */
const stableAfterMs = 30_000;

/** Resolves when it was told to stop, or when the machine has left. */
export async function runMachine(run: MachineRun): Promise<void> {
  const stop = new AbortController();
  const onSignal = (name: NodeJS.Signals): void => stop.abort(name);
  process.on("SIGTERM", onSignal);
  process.on("SIGINT", onSignal);
  try {
    if (run.capture !== undefined) await capture(run.capture);
    await keepRunning(run, stop.signal);
  } finally {
    process.off("SIGTERM", onSignal);
    process.off("SIGINT", onSignal);
    if (run.capture !== undefined) await withCaptureFailures(() => removeCapture());
  }
}

async function capture({ user, excludeInboundPorts }: NonNullable<MachineRun["capture"]>): Promise<void> {
  const { plan, problems } = planCapture({ proxyUid: String(user), excludeInboundPorts, dns: "all" });
  if (plan === undefined) throw new CommandFailure(problems.map(({ message }) => message).join("; "));
  await withCaptureFailures(() => installCapture(plan));
}

async function keepRunning(run: MachineRun, stop: AbortSignal): Promise<void> {
  let delayMs = firstDelayMs;
  while (!stop.aborted) {
    const startedMs = performance.now();
    const end = await runOnce(run, stop);
    if (end === "gone") {
      run.context.stderr("This machine has left the mesh, or was removed.\n");
      return;
    }
    if (end === "moved") continue;
    delayMs = performance.now() - startedMs > stableAfterMs ? firstDelayMs : Math.min(longestDelayMs, delayMs * 2);
    await wait(delayMs, undefined, { signal: stop }).catch(() => undefined);
  }
}

/** One agent, at one address. */
async function runOnce(run: MachineRun, stop: AbortSignal): Promise<"ended" | "moved" | "gone"> {
  const address = await addressOf(run, stop);
  if (address === undefined) return "ended";
  const agent = startAgent(run, address);
  const ended = once(agent, "exit") as Promise<[number | null]>;
  const onStop = (): void => void agent.kill(stop.reason as NodeJS.Signals);
  if (stop.aborted) onStop();
  stop.addEventListener("abort", onStop);
  tellProxy(run, address);
  let isMoved = false;
  const look = setInterval(() => {
    void addressNow(run).then((now) => {
      if (isMoved || stop.aborted || now === undefined || now === address) return;
      isMoved = true;
      run.context.stderr(`The machine's address has changed: ${address} → ${now}\n`);
      // Nobody reaches it where it was.
      agent.kill("SIGINT");
    });
  }, lookEveryMs);
  const [code] = await ended;
  clearInterval(look);
  stop.removeEventListener("abort", onStop);
  if (code === agentExitCodes.gone) return "gone";
  if (!stop.aborted && !isMoved) run.context.stderr(`The agent has ended (${code ?? "killed"}), and starts again.\n`);
  return isMoved ? "moved" : "ended";
}

function tellProxy({ capture: captured, context }: MachineRun, address: string): void {
  if (captured !== undefined) return;
  const host = address.includes(":") ? `[${address}]` : address;
  context.stdout(`Programs of this user reach the mesh by HTTP_PROXY=http://${host}:${outboundProxyPort}\n`);
}

function addressNow({ address, machine }: MachineRun): Promise<string | undefined> {
  return address === undefined ? ownAddressTowards(machine.controlPlane) : Promise.resolve(address);
}

/** Waits for a network. */
async function addressOf(run: MachineRun, stop: AbortSignal): Promise<string | undefined> {
  for (let isTold = false; !stop.aborted; isTold = true) {
    const address = await addressNow(run);
    if (address !== undefined) return address;
    if (!isTold) run.context.stderr(`There is no way to ${run.machine.controlPlane} yet.\n`);
    await wait(lookEveryMs, undefined, { signal: stop }).catch(() => undefined);
  }
  return undefined;
}

function startAgent(run: MachineRun, address: string): ChildProcess {
  const { machine, stateFolder, answersDns, context, capture: captured } = run;
  const settings = { machine, stateFolder, address, isCaptured: captured !== undefined, answersDns };
  // What was meant for joining is nothing for the agent.
  const { TULLE_JOIN_TOKEN: _token, ...inherited } = context.env;
  return spawn(process.execPath, [entryFile, "agent"], {
    env: { ...inherited, NODE_COMPILE_CACHE: compileCacheFolder, ...machineEnvironment(settings) },
    // What ends with this process, however that ends, tells the agent to end, too.
    stdio: ["pipe", "inherit", "inherit"],
    cwd: "/",
    ...(captured === undefined ? {} : { uid: captured.user, gid: captured.user }),
  });
}
