// Runs a program in this process's place: it has the standard streams, the terminal and the signals, and its end is the
// command's.
import { spawn } from "node:child_process";
import { closeSync, openSync } from "node:fs";
import os from "node:os";
import { listProcesses } from "@tulle/capture";
import { CommandFailure } from "../../command/command-failure.ts";

export interface Run {
  readonly argv: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  /** The first words start the program in a PID namespace and wait for it: it is their child. */
  readonly isWaitedFor?: boolean;
}

/** What shells give for a program that is not there, and for one that cannot be run. */
const notFound = 127;
const notExecutable = 126;
/** A terminal sends these to all that run at it, the program included. */
const ofTerminal: readonly NodeJS.Signals[] = ["SIGINT", "SIGQUIT"];
const passedOn: readonly NodeJS.Signals[] = [...ofTerminal, "SIGTERM", "SIGHUP", "SIGUSR2"];

/** Its exit status; 128 and the signal's number where a signal ended it. @throws {CommandFailure} */
export async function runToItsEnd(run: Run): Promise<number> {
  const { cwd, env, isWaitedFor = false } = run;
  const [program = "", ...args] = run.argv;
  const isAtTerminal = hasTerminal();
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  const child = spawn(program, args, { cwd, env, stdio: "inherit" });
  const pass = (signal: NodeJS.Signals): void => {
    if (isAtTerminal && ofTerminal.includes(signal)) return;
    const [own] = isWaitedFor ? childrenOf(child.pid) : [];
    if (own === undefined) child.kill(signal);
    else process.kill(own, signal);
  };
  for (const signal of passedOn) process.on(signal, pass);
  child.once("error", ({ code, message }: NodeJS.ErrnoException) => {
    const isMissing = code === "ENOENT" || code === "ENOTDIR";
    const exitCode = isMissing ? notFound : notExecutable;
    reject(new CommandFailure(`${program}: ${isMissing ? "there is no such program" : message}`, { exitCode }));
  });
  child.once("exit", (code, signal) => resolve(signal === null ? code! : 128 + os.constants.signals[signal]));
  try {
    return await promise;
  } finally {
    for (const signal of passedOn) process.off(signal, pass);
  }
}

/** None before it has started, and after it has ended. */
function childrenOf(pid: number | undefined): readonly number[] {
  return listProcesses().flatMap((each) => (each.parent === pid ? [each.pid] : []));
}

function hasTerminal(): boolean {
  try {
    closeSync(openSync("/dev/tty", "r"));
    return true;
  } catch {
    return false;
  }
}
