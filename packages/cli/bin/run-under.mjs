// Puts another Node in the place of the one that was started: both launchers of `tulle` are for any Node from 18 on,
// and what they lead to is for the pinned one alone.
import { spawn } from "node:child_process";
import os from "node:os";
import process from "node:process";

/**
 * Runs `script` with the arguments of this process. Returns only where a second process is needed, which it waits for.
 */
export function runUnder(node, script) {
  const args = [...process.execArgv, script, ...process.argv.slice(2)];
  // Newer runtimes can become the pinned one in place, without a process that only waits.
  if (typeof process.execve === "function") process.execve(node, [node, ...args], process.env);
  // The pipe is never written to: it closes when this process is gone, however it ended, and the other one ends too.
  const child = spawn(node, args, {
    stdio: ["inherit", "inherit", "inherit", "pipe"],
    env: { ...process.env, TULLE_LAUNCHER_FD: "3" },
  });
  child.stdio[3]?.on("error", () => {});
  // Ctrl-C reaches the whole foreground group by itself, a signal from elsewhere only this process.
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR2", "SIGWINCH"]) {
    process.on(signal, () => {
      if (signal !== "SIGINT" || !process.stdin.isTTY) child.kill(signal);
    });
  }
  child.once("error", (error) => {
    process.stderr.write(`tulle: cannot start ${node}: ${error.message}\n`);
    process.exitCode = 1;
  });
  child.once("exit", (code, signal) => {
    process.exitCode = signal === null ? code : 128 + os.constants.signals[signal];
  });
}
