// Runs one bounded command to its end and returns what it printed; the finders install their tools with it.
import { spawn } from "node:child_process";

export interface CommandOptions {
  readonly cwd?: string;
  readonly env?: NodeJS.ProcessEnv;
  readonly timeoutMs?: number;
  /** Another user and group to run as, which root may choose. */
  readonly uid?: number;
  readonly gid?: number;
}

export interface CommandResult {
  /** Exit status; null when a signal or the time limit ended the command. */
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/**
 * Never rejects for an unsuccessful command: a program that cannot be started at all gives code 127, as a shell would.
 */
export function runCommand(
  command: string,
  args: readonly string[],
  options: CommandOptions = {},
): Promise<CommandResult> {
  const { promise, resolve } = Promise.withResolvers<CommandResult>();
  const child = spawn(command, args, {
    cwd: options.cwd,
    env: options.env ?? process.env,
    ...(options.uid === undefined ? {} : { uid: options.uid, gid: options.gid }),
    stdio: ["ignore", "pipe", "pipe"],
    timeout: options.timeoutMs ?? 60_000,
    killSignal: "SIGKILL",
  });
  let stdout = "";
  let stderr = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => (stdout += text));
  child.stderr.setEncoding("utf8").on("data", (text: string) => (stderr += text));
  child.once("error", (error) => resolve({ code: 127, stdout, stderr: stderr + error.message }));
  child.once("close", (code) => resolve({ code, stdout, stderr }));
  return promise;
}

/** The last lines of what a failed command said: enough for an error message. */
export function lastLines(result: CommandResult, count = 5): string {
  const text = (result.stderr.trim() === "" ? result.stdout : result.stderr).trim();
  return text === "" ? `no output, exit status ${result.code}` : text.split("\n").slice(-count).join("\n");
}
