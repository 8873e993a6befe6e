#!/usr/bin/env node
// The tulle command of a clone: sets the clone up if need be, then runs the command under the pinned Node, whatever Node started it.
// Plain JavaScript for any Node from 18 on; under the pinned Node there is no second process.
import { spawn } from "node:child_process";
import fs from "node:fs";
import module from "node:module";
import os from "node:os";
import path from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { isSetUp, pinnedNode, setUpOrExit } from "../../../tools/bootstrap.mjs";

const here = path.dirname(fileURLToPath(import.meta.url));
const main = path.join(here, "..", "src", "main.ts");

if (!isSetUp()) await setUpOrExit();

if (process.execPath === fs.realpathSync(pinnedNode)) {
  // Compiled code and stripped types are kept between runs; a folder that cannot be written only makes the start slower.
  module.enableCompileCache(path.join(here, "..", "..", "..", "node_modules", ".cache", "compile"));
  process.argv[1] = main;
  await import(main);
} else {
  runUnderPinnedNode();
}

function runUnderPinnedNode() {
  const args = [...process.execArgv, fileURLToPath(import.meta.url), ...process.argv.slice(2)];
  // Newer runtimes can become the pinned one in place, without a process that only waits.
  if (typeof process.execve === "function") process.execve(pinnedNode, [pinnedNode, ...args], process.env);
  // The pipe is never written to: it closes when this process is gone, however it ended, and the other one ends too.
  const child = spawn(pinnedNode, args, {
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
    process.stderr.write(`tulle: cannot start ${pinnedNode}: ${error.message}\n`);
    process.exitCode = 1;
  });
  child.once("exit", (code, signal) => {
    process.exitCode = signal === null ? code : 128 + os.constants.signals[signal];
  });
}
